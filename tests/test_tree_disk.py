"""Reading a work tree: all that is in it, nothing that is not, and never waiting."""

import os
import socket
from pathlib import Path

import pytest

from renderer.model import Entry, TreeError, walk
from renderer.tree.disk import MAX_BYTES, MAX_DEPTH, DiskTree
from tests.unprivileged import run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a neighbour that is none of its business."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "token.yaml").write_text("secret")
    root = tmp_path / "repo"
    (root / "policies" / "east").mkdir(parents=True)
    (root / "policies" / "a.yaml").write_text("a: 1\n")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("[core]\n")
    return root


def refusal(root: Path, path: str) -> str:
    with pytest.raises(TreeError) as caught:
        DiskTree(root).read(path)
    return str(caught.value)


def problems(root: Path) -> dict[str, str]:
    return {entry.name: entry.problem for entry in DiskTree(root).list("policies") if entry.problem}


def test_lists_by_name_without_git(root: Path) -> None:
    (root / "README.md").touch()
    (root / ".hidden").touch()
    assert DiskTree(root).list("") == [Entry(".hidden", False), Entry("README.md", False), Entry("policies", True)]
    assert DiskTree(root).list("policies") == [Entry("a.yaml", False), Entry("east", True)]


def test_a_folder_that_is_not_there_has_no_entries(root: Path) -> None:
    assert DiskTree(root).list("bases") == ()
    assert DiskTree(root).list("bases/east") == ()


def test_a_file_is_no_folder(root: Path) -> None:
    reason = "policies/a.yaml is not a folder"
    with pytest.raises(TreeError, match=reason):
        DiskTree(root).list("policies/a.yaml")
    assert refusal(root, "policies/a.yaml/x.yaml") == reason


@pytest.mark.parametrize("name", ["empty", "größe.yaml", "mit blank.yaml", "-x", "n" * 255])
def test_reads_any_name(root: Path, name: str) -> None:
    (root / "policies" / name).write_bytes(b"" if name == "empty" else b"x\r\n\0")
    assert DiskTree(root).read(f"policies/{name}") == (root / "policies" / name).read_bytes()


def test_reads_large_files_whole(root: Path) -> None:
    (root / "large").write_bytes(bytes(range(256)) * 8192)
    assert DiskTree(root).read("large") == bytes(range(256)) * 8192


def test_reads_files_that_do_not_know_their_size() -> None:
    kernel = Path("/proc/sys/kernel")
    if not kernel.is_dir():
        pytest.skip("needs a file that states no size and still has content, as Linux has in /proc")
    assert DiskTree(kernel).read("ostype") == b"Linux\n"
    with pytest.raises(TreeError, match="at most 5 are read"):
        DiskTree(kernel).read("ostype", limit=5)


def test_a_limit_holds_before_anything_is_read(root: Path) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert "at most 16777216 are read" in refusal(root, "huge")
    assert DiskTree(root).read("policies/a.yaml", limit=5) == b"a: 1\n"
    with pytest.raises(TreeError, match="at most 4 are read") as caught:
        DiskTree(root).read("policies/a.yaml", limit=4)
    assert caught.value.code == "policy/limit"


@pytest.mark.parametrize("path", ["gone.yaml", "policies/gone.yaml", "gone/x.yaml"])
def test_what_is_not_there_is_missing(root: Path, path: str) -> None:
    with pytest.raises(TreeError, match="no such file") as caught:
        DiskTree(root).read(path)
    assert caught.value.missing


@pytest.mark.parametrize(
    "path",
    [
        "",
        "..",
        "../secret/token.yaml",
        "policies/../a.yaml",
        "/etc/passwd",
        "/policies",
        "policies//a.yaml",
        "./policies/a.yaml",
        "nul\0",
    ],
)
def test_paths_go_downwards(root: Path, path: str) -> None:
    assert "downwards" in refusal(root, path)


@pytest.mark.parametrize("path", [".git/config", "policies/.git/config", ".GIT/config", ".git"])
def test_git_is_not_part_of_the_tree(root: Path, path: str) -> None:
    assert ".git is not part" in refusal(root, path)


@pytest.mark.parametrize("path", ["x" * 5000, "x/" * 60 + "y" * 300, "\ud800"])
def test_impossible_names_are_refused(root: Path, path: str) -> None:
    refusal(root, path)
    refusal(root, f"{path}/x.yaml")


def test_endless_paths_are_refused(root: Path) -> None:
    assert f"nested more than {MAX_DEPTH} deep" in refusal(root, "x/" * 5000 + "x")


def test_deep_folders_are_entries_that_cannot_be_entered(root: Path) -> None:
    deep = root
    for _ in range(MAX_DEPTH + 40):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "x.yaml").touch()
    *_, (path, entry) = walk(DiskTree(root), "d")
    assert path.count("/") == MAX_DEPTH
    assert entry.problem == f"folders are nested more than {MAX_DEPTH} deep"


def test_links_to_files_of_the_tree_are_files(root: Path) -> None:
    (root / "policies" / "link.yaml").symlink_to("../policies/a.yaml")
    (root / "policies" / "again.yaml").symlink_to("link.yaml")
    assert problems(root) == {}
    assert DiskTree(root).read("policies/again.yaml") == b"a: 1\n"


def test_a_root_that_is_a_link_is_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "checkout").symlink_to(root)
    (root / "policies" / "link.yaml").symlink_to("a.yaml")
    assert DiskTree(tmp_path / "checkout").read("policies/link.yaml") == b"a: 1\n"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("../../secret/token.yaml", "a link that leads out of the repository"),
        ("/dev/null", "a link that leads out of the repository"),
        ("/dev/zero", "a link that leads out of the repository"),
        ("../.git/config", "a link that leads out of the repository"),
        ("../../repository", "a link to nothing"),
        ("nowhere.yaml", "a link to nothing"),
        ("link.yaml", "a link that leads in a circle"),
        ("east", "a link to a folder"),
        ("pipe", "a link to a named pipe"),
        ("a.yaml/x", "a link to nothing"),
    ],
)
def test_other_links_are_named(root: Path, target: str, reason: str) -> None:
    (root / "policies" / "link.yaml").symlink_to(target)
    os.mkfifo(root / "policies" / "pipe")
    assert problems(root)["link.yaml"] == reason
    assert refusal(root, "policies/link.yaml") == reason


def test_a_neighbour_whose_name_begins_alike_is_outside(root: Path, tmp_path: Path) -> None:
    (tmp_path / "repo-2").mkdir()
    (tmp_path / "repo-2" / "x.yaml").touch()
    (root / "policies" / "link.yaml").symlink_to("../../repo-2/x.yaml")
    assert problems(root) == {"link.yaml": "a link that leads out of the repository"}


def test_folders_are_not_followed_through_links(root: Path, tmp_path: Path) -> None:
    (root / "base").symlink_to(tmp_path / "secret")
    assert refusal(root, "base/token.yaml").startswith("base is a link")
    (root / "policies" / "east" / "up").symlink_to("..")
    assert refusal(root, "policies/east/up/a.yaml").startswith("policies/east/up is a link")
    with pytest.raises(TreeError, match="base is a link"):
        DiskTree(root).list("base")
    up = Entry("up", folder=True, problem="a link to a folder")
    assert dict(walk(DiskTree(root), "policies"))["policies/east/up"] == up


def test_pipes_and_sockets_are_named_and_not_waited_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "policies" / "pipe.yaml")
    monkeypatch.chdir(root / "policies")  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.yaml")
        assert problems(root) == {"pipe.yaml": "a named pipe, not a file", "socket.yaml": "a socket, not a file"}
        assert refusal(root, "policies/pipe.yaml") == "a named pipe, not a file"
        assert refusal(root, "policies/socket.yaml") == "a socket or device, not a file"
        assert refusal(root, "policies/east") == "a folder, not a file"


def test_names_that_cannot_be_printed_are_named_in_print(root: Path) -> None:
    (root / "policies" / "a\n::error::b.yaml").touch()
    try:
        Path(os.fsdecode(os.fsencode(root / "policies") + b"/\xff.yaml")).touch()
    except OSError:
        pytest.skip("this file system takes no names but UTF-8")
    reason = "its name has characters that cannot be printed"
    assert problems(root) == {r"a\n::error::b.yaml": reason, r"\udcff.yaml": reason}


def test_what_may_not_be_read_says_so(root: Path) -> None:
    (root / "policies" / "a.yaml").chmod(0)
    (root / "policies" / "east").chmod(0)
    told = run(
        root,
        """
from renderer.model import TreeError
from renderer.tree.disk import DiskTree
#drop
tree = DiskTree(Path())
print([(entry.name, entry.problem) for entry in tree.list("policies")])
for read in tree.read, tree.list:
    for path in "policies/a.yaml", "policies/east/x.yaml", "policies/east":
        try:
            print(read(path))
        except TreeError as error:
            print(path, error)
""",
    )
    (root / "policies" / "east").chmod(0o755)
    assert told.splitlines() == [
        "[('a.yaml', ''), ('east', 'permission denied')]",
        "policies/a.yaml permission denied",
        "policies/east/x.yaml permission denied",
        "policies/east permission denied",
        "policies/a.yaml policies/a.yaml is not a folder",
        "policies/east/x.yaml permission denied",
        "policies/east permission denied",
    ]
