"""Writers that die at any moment, and writers that meet: every file is whole, and the next write ends it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from renderer.header import sealed
from renderer.tree.changes import STAGING, State, compare
from renderer.tree.writing import write
from tests.unprivileged import SOURCES

Files = dict[str, str]


def fleet(name: str, *clusters: str, size: int = 1) -> Files:
    return {
        f"overlays/{cluster}/{file}": sealed(f"kind: {name}\n" * size, [f"RateLimitPolicy/{name}"])
        for cluster in clusters
        for file in ("kustomization.yaml", "operator/kubevirt.yaml", f"only-{name}/x.yaml")
    }


NOTES = {"overlays/README.md": "ours\n", "overlays/gone/notes/todo.txt": "later\n"}
OLD = {**NOTES, **fleet("old", "east", "gone", "gone-2")}
NEW = fleet("new", "east", "west", "west-2")

# Forks a writer for each line it reads, and has it killed before that one of its system calls that change a disk.
KILLER = """
import json, os, signal, sys
from pathlib import Path
from renderer.tree.writing import write
expected = json.load(open(sys.argv[1]))
calls = [os.open, os.write, os.mkdir, os.link, os.replace, os.unlink, os.rmdir]
for line in sys.stdin:
    left = int(line)
    child = os.fork()
    if not child:
        def called(frame, event, function):
            global left
            if event == "c_call" and function in calls:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.setprofile(called)
        write(Path(), "overlays", expected)
        sys.setprofile(None)
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""

# Writes the one and the other tree in turn.
WRITER = """
import json, sys
from pathlib import Path
from renderer.tree.writing import write
trees = json.load(open(sys.argv[1]))
for number in range(int(sys.argv[2])):
    write(Path(), "overlays", trees[number % len(trees)])
"""


def put(root: Path, files: Files) -> None:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def content(root: Path) -> Files:
    """All files, and empty folders with a slash behind."""
    found = {}
    for place in (root / "overlays").rglob("*"):
        if place.is_file():
            found[str(place.relative_to(root))] = place.read_text()
        elif not any(place.iterdir()):
            found[f"{place.relative_to(root)}/"] = ""
    return found


def started(script: str, root: Path, *arguments: object) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": os.fspath(SOURCES)}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=root, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def killer(root: Path, expected: Files) -> Iterator[subprocess.Popen[str]]:
    plan = root / "expected.json"
    plan.write_text(json.dumps(expected))
    with started(KILLER, root, plan) as process:
        yield process
        assert process.stdin
        process.stdin.close()


def killed(process: subprocess.Popen[str], number: int) -> bool:
    assert process.stdin
    assert process.stdout
    process.stdin.write(f"{number}\n")
    process.stdin.flush()
    status = int(process.stdout.readline())
    assert status in (0, signal.SIGKILL)
    return status != 0


def visible(files: Files) -> Files:
    return {path: text for path, text in files.items() if f"/{STAGING}" not in path and not path.endswith("/")}


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, NEW), (OLD, NEW), (OLD, {}), (NOTES, {})],
    ids=["from nothing", "over the old", "all away", "nothing to do"],
)
def test_a_kill_at_any_call_leaves_whole_files(before: Files, after: Files, tmp_path: Path) -> None:
    final = {**{path: text for path, text in before.items() if path in NOTES}, **after}
    whole = {path: {files.get(path) for files in (before, final)} for path in before | final}
    put(tmp_path, before)
    with killer(tmp_path, after) as process:
        number, dead = 0, True
        while dead:
            write(tmp_path, "overlays", {path: text for path, text in before.items() if path not in NOTES})
            assert content(tmp_path) == before
            dead = killed(process, number)
            left = visible(content(tmp_path))
            assert all(left.get(path) in texts for path, texts in whole.items())
            assert left.keys() <= whole.keys()
            found = compare(tmp_path, "overlays", after)
            assert not found.blocking
            assert (left == final) == all(change.state is State.FOREIGN for change in found.changes)
            assert dead or left == final
            write(tmp_path, "overlays", after)
            assert content(tmp_path) == final
            number += 1
    assert number > 10 or final == before


def test_what_a_killed_writer_leaves_is_hidden_from_git(tmp_path: Path) -> None:
    git = ["git", "-c", "core.excludesFile=/dev/null", "-C", os.fspath(tmp_path)]
    subprocess.run([*git, "init", "--quiet"], check=True)
    with killer(tmp_path, NEW) as process:
        for number in count():
            if not killed(process, number):
                pytest.fail("no kill left a staging folder with a text in it")
            if any(path.endswith("kustomization.yaml") for path in content(tmp_path)):
                break
    command = [*git, "status", "--porcelain", "--untracked-files=all", "overlays"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == ""


@pytest.mark.parametrize("writers", [2, 4])
def test_writers_that_meet_end_in_one_of_their_trees(writers: int, tmp_path: Path) -> None:
    first, second = fleet("first", "east", "west", size=5000), fleet("second", "east", "north", size=5000)
    put(tmp_path, NOTES)
    plan = tmp_path / "trees.json"
    plan.write_text(json.dumps([first, second]))
    processes = [started(WRITER, tmp_path, plan, 25 + number) for number in range(writers)]
    looks = 0
    while any(process.poll() is None for process in processes):
        assert_whole(tmp_path, first, second)
        looks += 1
    assert [process.wait() for process in processes] == [0] * writers
    for process in processes:
        process.communicate()
    assert looks > 3
    assert content(tmp_path) in ({**NOTES, **first}, {**NOTES, **second})


def assert_whole(root: Path, first: Files, second: Files) -> None:
    """What anybody sees while others write: whole files of either tree."""
    for change in compare(root, "overlays", first).changes:
        if change.before is not None:
            assert change.before == second[change.path]
        else:
            assert change.state is State.MISSING or change.path in NOTES
    with suppress(FileNotFoundError):
        path = "overlays/east/kustomization.yaml"
        assert (root / path).read_text() in (first[path], second[path])


def test_an_interrupt_puts_back_what_was_moved(tmp_path: Path) -> None:
    """Ctrl-C between two renames, as Python raises it."""
    script = KILLER.replace("os.kill(os.getpid(), signal.SIGKILL)", "sys.setprofile(None); raise KeyboardInterrupt")
    script = script.replace(
        'write(Path(), "overlays", expected)',
        """
        try:
            write(Path(), "overlays", expected)
        except KeyboardInterrupt:
            os._exit(1)""",
    ).replace("function in calls", "function is os.replace")
    plan = tmp_path / "expected.json"
    plan.write_text(json.dumps(NEW))
    put(tmp_path, OLD)
    with started(script, tmp_path, plan) as process:
        assert process.stdin
        assert process.stdout
        for number in count():
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            if int(process.stdout.readline()) == 0:
                break
            assert content(tmp_path) == OLD
        process.stdin.close()
    assert number > 5
    assert write(tmp_path, "overlays", NEW).changes == compare(tmp_path, "overlays", NEW).changes
    assert content(tmp_path) == {**NOTES, **NEW}
