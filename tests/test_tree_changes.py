"""Comparing a work tree with what was rendered: every difference has a name, whatever stands there."""

import os
import socket
from pathlib import Path

import pytest

from renderer.header import FORMAT, sealed
from renderer.model import TreeError
from renderer.tree.changes import Change, Comparison, State, compare
from tests.unprivileged import run

OLD = sealed("kind: Old\n", ["RateLimitPolicy/limits"])
NEW = sealed("kind: New\n", ["RateLimitPolicy/limits"])
EDITED = OLD + "# and a hand\n"
NEWER = OLD.replace(f"format {FORMAT}.", f"format {FORMAT + 1}.")
FOREIGN = "kind: Foreign\n"
PATH = "overlays/east/operator/kubevirt.yaml"
EXPECTED = {PATH: NEW}


def put(root: Path, path: str, text: str | bytes) -> Path:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode() if isinstance(text, str) else text)
    return place


def states(root: Path, expected: dict[str, str], *clusters: str) -> dict[str, State]:
    found = compare(root, "overlays", expected, clusters=clusters or None)
    return {change.path: change.state for change in found.changes}


def only(root: Path, expected: dict[str, str]) -> Change:
    (change,) = compare(root, "overlays", expected).changes
    return change


def test_nothing_differs(tmp_path: Path) -> None:
    put(tmp_path, PATH, NEW)
    assert compare(tmp_path, "overlays", EXPECTED) == Comparison()


def test_without_a_folder_all_is_missing(tmp_path: Path) -> None:
    assert compare(tmp_path, "overlays", {}) == Comparison()
    assert only(tmp_path, EXPECTED) == Change(PATH, State.MISSING, after=NEW)


@pytest.mark.parametrize(
    ("text", "wanted", "change"),
    [
        (OLD, NEW, Change(PATH, State.STALE, before=OLD, after=NEW)),
        (OLD, None, Change(PATH, State.ORPHANED, before=OLD)),
        (EDITED, NEW, Change(PATH, State.EDITED, before=EDITED, after=NEW)),
        (EDITED, OLD, Change(PATH, State.EDITED, before=EDITED, after=OLD)),
        (EDITED, None, Change(PATH, State.ORPHANED, before=EDITED)),
        (NEWER, NEW, Change(PATH, State.NEWER, before=NEWER, after=NEW, blocking=True)),
        (NEWER, None, Change(PATH, State.NEWER, before=NEWER, blocking=True)),
        (FOREIGN, NEW, Change(PATH, State.FOREIGN, after=NEW, reason="no header of kubevirt-policy", blocking=True)),
        (FOREIGN, None, Change(PATH, State.FOREIGN, reason="no header of kubevirt-policy")),
        (b"\xff\xfe", NEW, Change(PATH, State.FOREIGN, after=NEW, reason="not UTF-8", blocking=True)),
        (b"\xff\xfe", None, Change(PATH, State.FOREIGN, reason="not UTF-8")),
        ("", NEW, Change(PATH, State.EDITED, before="", after=NEW)),
        ("", None, Change(PATH, State.FOREIGN, reason="no header of kubevirt-policy")),
        ("\ufeff" + NEW, NEW, Change(PATH, State.EDITED, before="\ufeff" + NEW, after=NEW)),
    ],
)
def test_one_file(text: str | bytes, wanted: str | None, change: Change, tmp_path: Path) -> None:
    put(tmp_path, PATH, text)
    assert only(tmp_path, {PATH: wanted} if wanted else {}) == change


def test_crlf_is_compared_as_lf_and_told(tmp_path: Path) -> None:
    texts = {
        "overlays/a/same": NEW,
        "overlays/b/stale": OLD,
        "overlays/c/edited": EDITED,
        "overlays/d/foreign": FOREIGN,
    }
    for path, text in texts.items():
        put(tmp_path, path, text.replace("\n", "\r\n"))
    put(tmp_path, "overlays/e/lf", NEW)
    found = compare(tmp_path, "overlays", dict.fromkeys([*texts, "overlays/e/lf"], NEW))
    assert [change.state for change in found.changes] == [State.STALE, State.EDITED, State.FOREIGN]
    assert found.changes[0].before == OLD
    assert found.crlf == ("overlays/a/same", "overlays/b/stale", "overlays/c/edited")


def test_changes_come_in_order_of_path(tmp_path: Path) -> None:
    for name in "fbd":
        put(tmp_path, f"overlays/{name}/x", OLD)
    found = compare(tmp_path, "overlays", {f"overlays/{name}/x": NEW for name in "edcba"})
    assert [(change.path[9], change.state) for change in found.changes] == [
        ("a", State.MISSING), ("b", State.STALE), ("c", State.MISSING),
        ("d", State.STALE), ("e", State.MISSING), ("f", State.ORPHANED),
    ]  # fmt: skip


def test_clusters_limit_what_is_looked_at(tmp_path: Path) -> None:
    paths = [
        "overlays/east/x", "overlays/east/operator/x", "overlays/east-2/x", "overlays/README.md",
        "overlays/_node-tuning/east/x", "overlays/_node-tuning/east-2/x",
        "overlays/_delivery/east.yaml", "overlays/_delivery/east-2.yaml", "overlays/_delivery/argocd/east.yaml",
    ]  # fmt: skip
    for path in paths:
        put(tmp_path, path, OLD)
    expected = {"overlays/east/new": NEW, "overlays/west/new": NEW, "overlays/_node-tuning/west/new": NEW}
    assert states(tmp_path, expected, "east") == {
        "overlays/_delivery/east.yaml": State.ORPHANED,
        "overlays/_node-tuning/east/x": State.ORPHANED,
        "overlays/east/new": State.MISSING,
        "overlays/east/operator/x": State.ORPHANED,
        "overlays/east/x": State.ORPHANED,
    }
    assert compare(tmp_path, "overlays", expected, clusters=[]).changes == ()
    assert len(states(tmp_path, expected)) == len(paths) + len(expected)


def test_staging_folders_are_no_output(tmp_path: Path) -> None:
    put(tmp_path, "overlays/.staging-0123/new/east/x", OLD)
    put(tmp_path, "overlays/.staging-file", FOREIGN)
    put(tmp_path, "overlays/east/.staging-0123/x", OLD)
    assert states(tmp_path, {}) == {
        "overlays/.staging-file": State.FOREIGN,
        "overlays/east/.staging-0123/x": State.ORPHANED,
    }


def test_empty_folders_are_nothing(tmp_path: Path) -> None:
    (tmp_path / "overlays/east/operator").mkdir(parents=True)
    assert states(tmp_path, {}) == {}
    assert states(tmp_path, EXPECTED) == {PATH: State.MISSING}


@pytest.mark.parametrize("text", [OLD, FOREIGN])
def test_a_file_where_a_folder_is_needed(text: str, tmp_path: Path) -> None:
    put(tmp_path, "overlays/east", text)
    reason = "a file where a folder is needed"
    assert only(tmp_path, EXPECTED) == Change("overlays/east", State.FOREIGN, reason=reason, blocking=True)


def test_a_folder_where_a_file_is_needed(tmp_path: Path) -> None:
    put(tmp_path, f"{PATH}/x", OLD)
    assert only(tmp_path, EXPECTED) == Change(PATH, State.FOREIGN, after=NEW, reason="a folder", blocking=True)


@pytest.mark.parametrize("target", ["elsewhere", "elsewhere/file", "nowhere", "."])
def test_links_are_foreign(target: str, tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/file", NEW)
    (tmp_path / "overlays/east/operator").mkdir(parents=True)
    link = tmp_path / PATH
    link.symlink_to(tmp_path / target)
    assert only(tmp_path, {}) == Change(PATH, State.FOREIGN, reason="a link")
    assert only(tmp_path, EXPECTED) == Change(PATH, State.FOREIGN, after=NEW, reason="a link", blocking=True)
    link.unlink()
    (tmp_path / "overlays/east/operator").rmdir()
    (tmp_path / "overlays/east/operator").symlink_to(tmp_path / target)
    barred = Change("overlays/east/operator", State.FOREIGN, reason="a link", blocking=True)
    assert only(tmp_path, EXPECTED) == barred


def test_special_files_are_foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "overlays/east").mkdir(parents=True)
    os.mkfifo(tmp_path / "overlays/east/pipe")
    monkeypatch.chdir(tmp_path / "overlays/east")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        found = compare(tmp_path, "overlays", {"overlays/east/pipe": NEW})
    assert [(change.path, change.reason, change.blocking) for change in found.changes] == [
        ("overlays/east/pipe", "a named pipe", True),
        ("overlays/east/socket", "a socket", False),
    ]


def test_huge_files_are_foreign_and_not_loaded(tmp_path: Path) -> None:
    put(tmp_path, "overlays/east/x", OLD)
    os.truncate(tmp_path / "overlays/east/x", 1 << 40)
    assert "at most" in only(tmp_path, {}).reason


def test_names_that_cannot_be_printed_are_foreign(tmp_path: Path) -> None:
    put(tmp_path, "overlays/a\nb/x", OLD)
    change = only(tmp_path, {})
    assert (change.path, change.state) == (r"overlays/a\nb/x", State.FOREIGN)


def test_other_alphabets_are_names_as_well(tmp_path: Path) -> None:
    path = f"overlays/größe/{'長' * 85}"
    put(tmp_path, path, OLD)
    assert only(tmp_path, {path: NEW}).state is State.STALE


def test_folders_too_deep_to_name_are_foreign(tmp_path: Path) -> None:
    (tmp_path / "overlays").mkdir()
    handle = os.open(tmp_path / "overlays", os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=handle)
        handle, left = os.open("d" * 200, os.O_RDONLY, dir_fd=handle), handle
        os.close(left)
    os.close(handle)
    assert only(tmp_path, {}).reason == "the name is too long"


@pytest.mark.parametrize("target", ["elsewhere", "nowhere", "elsewhere/file"])
def test_the_folder_itself_may_be_no_link(target: str, tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/file", OLD)
    (tmp_path / "overlays").symlink_to(target)
    with pytest.raises(TreeError, match="overlays is a link"):
        compare(tmp_path, "overlays", EXPECTED)


def test_the_folder_itself_must_be_one(tmp_path: Path) -> None:
    put(tmp_path, "overlays", OLD)
    with pytest.raises(TreeError, match="overlays is not a folder"):
        compare(tmp_path, "overlays", EXPECTED)


def test_what_may_not_be_read_is_foreign(tmp_path: Path) -> None:
    put(tmp_path, "overlays/east/x", OLD).chmod(0)
    put(tmp_path, "overlays/west/x", OLD).parent.chmod(0)
    told = run(
        tmp_path,
        """
from renderer.model import TreeError
from renderer.tree.changes import compare
#drop
for change in compare(Path(), "overlays", {"overlays/east/x": "", "overlays/west/x": ""}).changes:
    print(change.path, change.state, change.reason, change.blocking)
""",
    )
    (tmp_path / "overlays/west").chmod(0o755)
    assert told.splitlines() == [
        "overlays/east/x foreign permission denied True",
        "overlays/west foreign permission denied True",
    ]
