"""Writing a work tree: exactly what was rendered, nothing anywhere else, and all or nothing."""

import fcntl
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from renderer.header import FORMAT, sealed
from renderer.tree.changes import Comparison, State, compare
from renderer.tree.disk import MAX_DEPTH
from renderer.tree.writing import CannotWrite, write
from tests.unprivileged import SOURCES, run

OLD = sealed("kind: Old\n", ["RateLimitPolicy/limits"])
NEW = sealed("kind: New\n", ["RateLimitPolicy/limits"])
NEWER = OLD.replace(f"format {FORMAT}.", f"format {FORMAT + 1}.")
FOREIGN = "kind: Foreign\n"
EAST = "overlays/east/kustomization.yaml"
EXPECTED = {
    "overlays/_node-tuning/east/kustomization.yaml": NEW,
    "overlays/east/kustomization.yaml": NEW,
    "overlays/east/operator/kubevirt.yaml": NEW,
    "overlays/west/kustomization.yaml": NEW,
}


def put(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())


def content(root: Path) -> dict[str, str]:
    """All files, and empty folders with a slash behind, as they are byte for byte."""
    found: dict[str, str] = {}
    for folder, folders, files in os.walk(root):
        below = os.path.relpath(folder, root)
        found |= {os.path.normpath(f"{below}/{name}"): (Path(folder) / name).read_bytes().decode() for name in files}
        found |= {f"{os.path.normpath(below)}/": "" for _ in ["once"] if not folders and not files}
    return found


def refusal(root: Path, expected: dict[str, str], *, folder: str = "overlays") -> str:
    """What `write` says when it refuses, having changed nothing."""
    before = content(root)
    with pytest.raises(CannotWrite) as caught:
        write(root, folder, expected)
    assert content(root) == before
    return str(caught.value)


def test_writes_all_from_nothing(tmp_path: Path) -> None:
    done = write(tmp_path, "overlays", EXPECTED)
    assert content(tmp_path) == EXPECTED
    assert {change.state for change in done.changes} == {State.MISSING}
    assert write(tmp_path, "overlays", EXPECTED) == Comparison()


def test_nothing_to_write_makes_no_folder(tmp_path: Path) -> None:
    assert write(tmp_path, "overlays", {}) == Comparison()
    assert content(tmp_path) == {"./": ""}


def test_the_folder_may_lie_deeper(tmp_path: Path) -> None:
    expected = {f"deploy/fleet/{path}": text for path, text in EXPECTED.items()}
    write(tmp_path, "deploy/fleet/overlays", expected)
    assert content(tmp_path) == expected


def test_replaces_adds_and_removes(tmp_path: Path) -> None:
    keep = {"overlays/README.md": FOREIGN, "overlays/gone-2/notes.txt": FOREIGN, "policies/a.yaml": FOREIGN}
    put(tmp_path, keep)
    put(tmp_path, {
        "overlays/east/kustomization.yaml": OLD,
        "overlays/east/operator/kubevirt.yaml": OLD + "# edited\n",
        "overlays/east/descheduler/kubedescheduler.yaml": OLD,
        "overlays/gone/operator/kubevirt.yaml": OLD,
        "overlays/gone/kustomization.yaml": OLD,
        "overlays/gone-2/kustomization.yaml": OLD,
        "overlays/west/kustomization.yaml": NEW,
    })  # fmt: skip
    done = write(tmp_path, "overlays", EXPECTED)
    assert content(tmp_path) == {**EXPECTED, **keep}
    assert {change.path: change.state.value for change in done.changes} == {
        "overlays/README.md": "foreign",
        "overlays/_node-tuning/east/kustomization.yaml": "missing",
        "overlays/east/descheduler/kubedescheduler.yaml": "orphaned",
        "overlays/east/kustomization.yaml": "stale",
        "overlays/east/operator/kubevirt.yaml": "edited",
        "overlays/gone-2/kustomization.yaml": "orphaned",
        "overlays/gone-2/notes.txt": "foreign",
        "overlays/gone/kustomization.yaml": "orphaned",
        "overlays/gone/operator/kubevirt.yaml": "orphaned",
    }


def test_empty_folders_of_others_stay(tmp_path: Path) -> None:
    put(tmp_path, {"overlays/gone/operator/kubevirt.yaml": OLD})
    (tmp_path / "overlays/gone/empty").mkdir()
    write(tmp_path, "overlays", {})
    assert content(tmp_path) == {"overlays/gone/empty/": ""}


def test_the_last_cluster_leaves_an_empty_folder(tmp_path: Path) -> None:
    put(tmp_path, {"overlays/gone/operator/kubevirt.yaml": OLD})
    write(tmp_path, "overlays", {})
    assert content(tmp_path) == {"overlays/": ""}


def test_clusters_limit_what_is_written_and_removed(tmp_path: Path) -> None:
    others = {"overlays/west/old.yaml": OLD, "overlays/_node-tuning/west/old.yaml": OLD}
    put(tmp_path, {**others, "overlays/east/old.yaml": OLD, "overlays/_node-tuning/east/old.yaml": OLD})
    write(tmp_path, "overlays", EXPECTED, clusters=["east"])
    east = {path: text for path, text in EXPECTED.items() if "east" in path}
    assert content(tmp_path) == {**others, **east}


def test_line_ends_alone_are_no_reason_to_write(tmp_path: Path) -> None:
    path = "overlays/east/kustomization.yaml"
    put(tmp_path, {path: NEW.replace("\n", "\r\n")})
    assert write(tmp_path, "overlays", {path: NEW}) == Comparison(crlf=(path,))
    assert content(tmp_path) == {path: NEW.replace("\n", "\r\n")}
    write(tmp_path, "overlays", {path: OLD})
    assert content(tmp_path) == {path: OLD}


def test_a_shared_name_elsewhere_keeps_its_text(tmp_path: Path) -> None:
    path = "overlays/east/kustomization.yaml"
    put(tmp_path, {path: OLD})
    os.link(tmp_path / path, tmp_path / "elsewhere")
    write(tmp_path, "overlays", {path: NEW})
    assert content(tmp_path) == {path: NEW, "elsewhere": OLD}


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_modes_follow_the_umask(umask: int, mode: int, tmp_path: Path) -> None:
    path = "overlays/east/kustomization.yaml"
    before = os.umask(umask)
    try:
        write(tmp_path, "overlays", {path: NEW})
    finally:
        os.umask(before)
    assert (tmp_path / path).stat().st_mode & 0o777 == mode
    assert (tmp_path / path).parent.stat().st_mode & 0o777 == 0o777 & ~umask


@pytest.mark.parametrize(
    "path",
    [
        "elsewhere/x", "overlays", "overlays/", "/overlays/x", "/etc/x", "overlays/../x", "overlays/east/../../x",
        "overlays//x", "overlays/./x", "overlays/east/", "overlays\\east\\x", "overlays/..\\x", "overlays/a\0b",
        "overlays/.staging-1/x", "overlays/.git/hooks/x", "overlays/east/.GIT/x", "overlays/a\nb", "overlays/\udcff",
        "overlays-2/x", "../overlays/x", "", "overlays/" + "x/" * MAX_DEPTH + "x",
    ],
)  # fmt: skip
def test_no_path_leaves_the_folder(path: str, tmp_path: Path) -> None:
    assert "is no path below overlays" in refusal(tmp_path, {**EXPECTED, path: NEW})


@pytest.mark.parametrize("folder", ["..", "/tmp/x", "a/../..", "", ".git", "."])  # noqa: S108
def test_the_folder_lies_in_the_repository(folder: str, tmp_path: Path) -> None:
    refusal(tmp_path / "repo", {f"{folder}/x": NEW}, folder=folder)


@pytest.mark.parametrize("name", ["x" * 256, "長" * 86])
def test_names_too_long_for_the_disk_change_nothing(name: str, tmp_path: Path) -> None:
    put(tmp_path, {"overlays/gone/x": OLD, "overlays/east/kustomization.yaml": OLD})
    assert "the name is too long" in refusal(tmp_path, {**EXPECTED, f"overlays/zone/{name}": NEW})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FOREIGN, f"in the way: {EAST} (no header of kubevirt-policy); move it away and render again"),
        ("# Generated by me\n", f"in the way: {EAST} (no header of kubevirt-policy); move it away and render again"),
        (NEWER, f"a newer version of this tool wrote {EAST}; install that version and render again"),
    ],
)
def test_what_is_not_ours_is_never_replaced(text: str, message: str, tmp_path: Path) -> None:
    put(tmp_path, {EAST: text, "overlays/gone/x": OLD})
    assert refusal(tmp_path, EXPECTED) == message
    with pytest.raises(CannotWrite) as caught:
        write(tmp_path, "overlays", EXPECTED)
    assert [change.path for change in caught.value.blocking] == [EAST]


def test_many_files_in_the_way_are_counted(tmp_path: Path) -> None:
    expected = {f"overlays/{number}/x": NEW for number in range(9)}
    put(tmp_path, dict.fromkeys(expected, FOREIGN))
    assert " and 4 more; " in refusal(tmp_path, expected)


def test_files_and_folders_in_the_way_are_never_replaced(tmp_path: Path) -> None:
    put(tmp_path, {"overlays/east": OLD})
    assert "overlays/east (a file where a folder is needed)" in refusal(tmp_path, EXPECTED)
    (tmp_path / "overlays/east").unlink()
    (tmp_path / "overlays/west/kustomization.yaml").mkdir(parents=True)
    assert "overlays/west/kustomization.yaml (a folder)" in refusal(tmp_path, EXPECTED)


@pytest.mark.parametrize("link", ["overlays", "overlays/east", "overlays/east/operator", "overlays/_node-tuning"])
@pytest.mark.parametrize("inside", [True, False])
def test_never_through_a_link(link: str, inside: bool, tmp_path: Path) -> None:
    root = tmp_path / "repo"
    elsewhere = (root if inside else tmp_path) / "elsewhere"
    put(elsewhere, {"kubevirt.yaml": OLD, "kustomization.yaml": OLD, "operator/old.yaml": OLD})
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(elsewhere)
    before = content(tmp_path)
    assert "a link" in refusal(root, EXPECTED)
    assert content(tmp_path) == before


def test_never_into_a_file_behind_a_link(tmp_path: Path) -> None:
    put(tmp_path, {"elsewhere.yaml": OLD, "overlays/west/kustomization.yaml": OLD})
    (tmp_path / "overlays/east").mkdir()
    (tmp_path / "overlays/east/kustomization.yaml").symlink_to("../../elsewhere.yaml")
    assert "overlays/east/kustomization.yaml (a link)" in refusal(tmp_path, EXPECTED)


def test_never_above_a_linked_parent(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/deploy").symlink_to("../elsewhere")
    assert "deploy is a link" in refusal(tmp_path / "repo", {"deploy/overlays/x": NEW}, folder="deploy/overlays")
    assert content(tmp_path / "elsewhere") == {"./": ""}


def test_links_that_are_not_in_the_way_stay_and_lead_nowhere(tmp_path: Path) -> None:
    put(tmp_path, {"elsewhere/x": OLD, "overlays/gone/x": OLD})
    (tmp_path / "overlays/gone/link").symlink_to("../../elsewhere")
    write(tmp_path, "overlays", {})
    assert (tmp_path / "overlays/gone/link").is_symlink()
    assert (tmp_path / "elsewhere/x").exists()


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "overlays/east").mkdir(parents=True)
    os.mkfifo(tmp_path / "overlays/east/kustomization.yaml")
    with pytest.raises(CannotWrite, match="a named pipe"):
        write(tmp_path, "overlays", EXPECTED)


def test_what_a_killed_run_left_is_swept(tmp_path: Path) -> None:
    put(tmp_path, {"overlays/.staging-1/new/east/x": NEW, "overlays/.staging-1/old-1": OLD, "outside/x": FOREIGN})
    (tmp_path / "overlays/.staging-1/link").symlink_to(tmp_path / "outside")
    deep = tmp_path / "overlays/.staging-2"
    for _ in range(1200):
        deep.mkdir()
        deep /= "d"
    write(tmp_path, "overlays", EXPECTED)
    assert content(tmp_path) == {**EXPECTED, "outside/x": FOREIGN}


def test_a_link_named_like_staging_is_not_swept(tmp_path: Path) -> None:
    put(tmp_path, {"outside/x": FOREIGN, "overlays/x/y": OLD})
    (tmp_path / "overlays/.staging-1").symlink_to(tmp_path / "outside")
    write(tmp_path, "overlays", EXPECTED)
    assert (tmp_path / "overlays/.staging-1").is_symlink()
    assert (tmp_path / "outside/x").exists()


STALE = {
    "overlays/east/kustomization.yaml": OLD,
    "overlays/east/operator/kubevirt.yaml": OLD,
    "overlays/gone/kustomization.yaml": OLD,
}
WRITE = f"""
import json
from renderer.tree.writing import CannotWrite, write
expected = json.loads({json.dumps(json.dumps(EXPECTED))})
#drop
try:
    write(Path(), "overlays", expected)
except CannotWrite as error:
    print(error)
"""


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    put(tmp_path, STALE)
    small = WRITE.replace("#drop\n", "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n")
    assert run(tmp_path, small).startswith("overlays is left as it was: File too large")
    assert content(tmp_path) == STALE


def test_too_many_open_files_change_nothing(tmp_path: Path) -> None:
    put(tmp_path, STALE)
    few = WRITE.replace("#drop\n", "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n")
    assert run(tmp_path, few).startswith("overlays is left as it was: Too many open files")
    assert content(tmp_path) == STALE


def test_a_folder_that_takes_no_files_changes_nothing(tmp_path: Path) -> None:
    put(tmp_path, STALE)
    (tmp_path / "overlays").chmod(0o555)
    assert run(tmp_path, WRITE).startswith("overlays is left as it was: permission denied: overlays/.staging-")
    assert content(tmp_path) == STALE


def test_a_repository_that_takes_no_folders_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    code = WRITE.replace("    write(Path()", '    write(Path("repo")')
    if os.geteuid() != 0:
        (tmp_path / "repo").chmod(0o555)
    assert run(tmp_path, code) == "overlays is left as it was: permission denied: overlays\n"


@pytest.mark.parametrize("locked", ["east", "east/operator", "gone-2", "west"])
def test_an_error_half_way_takes_all_back(locked: str, tmp_path: Path) -> None:
    """The folder lets nothing be renamed in it, which shows only once other files have been."""
    before = {
        **STALE,
        "overlays/gone-2/notes.txt": FOREIGN,
        "overlays/gone-2/kustomization.yaml": OLD,
        "overlays/west/notes.txt": FOREIGN,
    }
    put(tmp_path, before)
    for folder, _, files in os.walk(tmp_path):
        Path(folder).chmod(0o777)
        for name in files:
            (Path(folder) / name).chmod(0o666)
    (tmp_path / "overlays" / locked).chmod(0o555)
    told = run(tmp_path, WRITE)
    (tmp_path / "overlays" / locked).chmod(0o755)
    assert told.startswith(f"overlays is left as it was: permission denied: overlays/{locked}")
    assert content(tmp_path) == before


def test_files_of_somebody_else_are_replaced_where_the_folder_allows_it(tmp_path: Path) -> None:
    """Linux lets nobody make a link to a file that he may not write, so that the old text is copied."""
    put(tmp_path, STALE)
    for folder, _, _ in os.walk(tmp_path):
        Path(folder).chmod(0o777)
    assert run(tmp_path, WRITE) == ""
    assert content(tmp_path) == EXPECTED


def test_a_read_only_work_tree_that_is_right_needs_no_writing(tmp_path: Path) -> None:
    put(tmp_path, EXPECTED)
    (tmp_path / "overlays").chmod(0o555)
    assert run(tmp_path, WRITE) == ""


def test_gives_up_on_a_lock_that_is_not_released(tmp_path: Path) -> None:
    put(tmp_path, STALE)
    handle = os.open(tmp_path / "overlays", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(CannotWrite, match="another kubevirt-policy is writing there"):
        write(tmp_path, "overlays", EXPECTED, wait=0.05)
    assert content(tmp_path) == STALE
    os.close(handle)
    write(tmp_path, "overlays", EXPECTED, wait=0)
    assert content(tmp_path) == EXPECTED


WAITER = f"""
import json, sys, time
from pathlib import Path
from renderer.tree.writing import write
def told(frame, event, function):
    if event == "c_call" and function is time.sleep:
        print("waiting", flush=True)
sys.setprofile(told)
write(Path(), "overlays", json.loads({json.dumps(json.dumps(EXPECTED))}))
"""


@pytest.mark.parametrize("replaced", [False, True])
def test_waits_for_the_lock_and_then_looks_again(replaced: bool, tmp_path: Path) -> None:
    put(tmp_path, STALE)
    handle = os.open(tmp_path / "overlays", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    env = {**os.environ, "PYTHONPATH": os.fspath(SOURCES)}
    command = [sys.executable, "-c", WAITER]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as waiter:
        assert waiter.stdout
        assert waiter.stdout.readline() == "waiting\n"
        if replaced:
            (tmp_path / "overlays").rename(tmp_path / "before")
            (tmp_path / "overlays").mkdir()
            before, handle = handle, os.open(tmp_path / "overlays", os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.close(before)
            assert [waiter.stdout.readline() for _ in range(20)] == ["waiting\n"] * 20
        put(tmp_path, {"overlays/late/kustomization.yaml": OLD})
        os.close(handle)
        waiter.communicate(timeout=60)
        assert waiter.returncode == 0
    assert content(tmp_path / "overlays") == {path.removeprefix("overlays/"): text for path, text in EXPECTED.items()}


NAMES = st.sampled_from(["a", "b", "_n/a", "a/o", "a/o/p", "b/o", "c/d/e"])
TEXTS = st.sampled_from([OLD, NEW, NEW + "edited\n", FOREIGN, NEWER, ""])


@settings(deadline=None)
@given(disk=st.dictionaries(NAMES, TEXTS), wanted=st.dictionaries(NAMES, st.sampled_from([OLD, NEW])))
def test_any_tree_ends_as_expected_or_as_it_was(disk: dict[str, str], wanted: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        put(root, {f"overlays/{name}/f.yaml": text for name, text in disk.items()})
        expected = {f"overlays/{name}/f.yaml": text for name, text in wanted.items()}
        before, found = content(root), compare(root, "overlays", expected)
        if found.blocking:
            refusal(root, expected)
        else:
            assert write(root, "overlays", expected) == found
            foreign = {change.path for change in found.changes if change.state is State.FOREIGN}
            after = {path: text for path, text in content(root).items() if not path.endswith("/")}
            assert after == {**{path: before[path] for path in foreign}, **expected}
