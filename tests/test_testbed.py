"""The test bed itself: programs are built once, and no server outlives the run that started it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.testbed import build
from tests.testbed.build import TOOLS
from tests.testbed.processes import NotReady, Process, free_port, serving, until

ROOT = Path(__file__).parents[1]
GO = """\
#!/bin/sh
echo "$PWD $*" >> {log}
{before}
while [ "$1" != -o ]; do shift; done
echo built > "$2"
"""
BUILD = "import sys; from tests.testbed import build; sys.exit(build.main(['prometheus']))"


def nothing(text: str) -> None:
    """Somebody to talk to."""


@pytest.fixture
def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a `go` on PATH that only notes how it is called; returns its notes."""

    def make(before: str) -> Path:
        log, program = tmp_path / "go.log", tmp_path / "bin" / "go"
        program.parent.mkdir()
        program.write_text(GO.format(log=log, before=before))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.defpath}")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
        return log

    return make


def test_two_runs_at_once_build_once(fake_go: Callable[[str], Path]) -> None:
    log = fake_go("sleep 1")
    runs = [
        subprocess.Popen([sys.executable, "-c", BUILD], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    folders = {run.communicate(timeout=60)[0].decode().strip() for run in runs}
    assert [run.returncode for run in runs] == [0, 0]
    [folder] = folders
    assert sorted(path.name for path in Path(folder).iterdir()) == ["prometheus", "promtool"]
    calls = log.read_text().splitlines()
    assert len(calls) == 2  # one for each of its two programs
    assert all(call.startswith(f"{TOOLS['prometheus'].folder} build -trimpath ") for call in calls)
    assert build.program("promtool", nothing) == Path(folder, "promtool")
    assert len(log.read_text().splitlines()) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end")
def test_a_killed_run_takes_its_build_along(fake_go: Callable[[str], Path], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    fake_go(f"echo $$ > {note}; exec sleep 600")
    with subprocess.Popen([sys.executable, "-c", BUILD], cwd=ROOT, stderr=subprocess.DEVNULL) as run:
        until(lambda: note.is_file() and note.read_text().endswith("\n"), "the build")
        run.kill()
    until(lambda: not alive(int(note.read_text())), "the end of the build", seconds=30)


def test_a_failed_build_leaves_nothing(fake_go: Callable[[str], Path], tmp_path: Path) -> None:
    fake_go("echo no such module; exit 1")
    with pytest.raises(build.BuildFailed, match="no such module"):
        build.program("etcd", nothing)
    assert [path.suffix for path in (tmp_path / "cache" / build.CACHE).iterdir()] == [".lock"]


def test_without_go_nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    with pytest.raises(build.NoGo, match="there is no `go` on PATH"):
        build.program("etcd", nothing)


def test_programs_of_envtest_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "etcd").write_text("")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert build.program("etcd", nothing) == tmp_path / "etcd"


def test_what_a_program_is_built_from_names_its_folder(tmp_path: Path) -> None:
    module = shutil.copytree(TOOLS["etcd"].folder, tmp_path / "etcd")
    before = build.digest(TOOLS["etcd"].folder, ["build"])
    assert build.digest(module, ["build"]) == before
    assert build.digest(module, ["build", "-race"]) != before
    with (module / "go.sum").open("a") as file:
        file.write("\n")
    assert build.digest(module, ["build"]) != before


@pytest.mark.parametrize("name", TOOLS)
def test_modules_are_pinned_and_name_no_place_of_this_machine(name: str) -> None:
    folder = TOOLS[name].folder
    assert (folder / "go.sum").is_file(), "run go mod tidy"
    text = (folder / "go.mod").read_text()
    assert re.findall(r"=>\s*[./]", text) == []
    assert "://" not in text


START = """
import sys, time
from pathlib import Path
from tests.testbed.processes import Process
folder = Path(sys.argv[1])
code = "import time; print('up', flush=True); time.sleep(600)"
process = Process([sys.executable, "-c", code], folder, folder / "log")
print(process.pid, flush=True)
{end}
"""


def alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.is_file() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_servers_end_with_the_run_that_is_killed(end: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", START.format(end="time.sleep(600)"), str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdout is not None
        pid = int(run.stdout.readline())
        until(lambda: (tmp_path / "log").read_text() == "up\n", "the server")
        assert alive(pid)
        run.send_signal(end)
    until(lambda: not alive(pid), "the end of the server", seconds=30)


def test_servers_end_with_a_run_that_forgets_them(tmp_path: Path) -> None:
    command = [sys.executable, "-c", START.format(end=""), str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(ended.stdout), 0)


def test_what_a_server_starts_ends_with_it(tmp_path: Path) -> None:
    process = Process(["/bin/sh", "-c", "sleep 600 & echo $!; wait"], tmp_path, tmp_path / "log")
    until(lambda: (tmp_path / "log").read_text().endswith("\n"), "the child", process=process)
    child = int((tmp_path / "log").read_text())
    process.stop()
    until(lambda: not alive(child), "the end of the child", seconds=30)


def test_a_server_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    def command(port: int) -> list[str]:
        return ["/bin/sh", "-c", f"echo port {port} is taken; exit 1"]

    with (
        pytest.raises(NotReady, match=r"some server: the process has ended(.|\n)*is taken"),
        serving("some server", command, lambda _: False, tmp_path),
    ):
        pytest.fail("it never runs")
    assert len(list(tmp_path.glob("some server-*.log"))) == 3  # a taken port is no reason to give up


def test_a_server_that_never_answers_is_given_up() -> None:
    with pytest.raises(NotReady, match="not within"):
        until(lambda: False, "it", seconds=0.1)


def test_ports_are_free() -> None:
    assert 1024 < free_port() < 65536


SERVER_TEST = "tests/test_real_overlays.py::test_a_field_of_another_release_is_refused"
SAID = "etcd cannot be built: there is no `go` on PATH (https://go.dev/dl); nothing is proven with the real etcd"


def without_go(folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """A test that needs a server, on a machine that has no `go` and never built anything."""
    given = ("CI", "KUBEBUILDER_ASSETS", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER")
    kept = {name: value for name, value in os.environ.items() if name not in given}
    (folder / "empty").mkdir()
    environment = {**kept, "PATH": str(folder / "empty"), "XDG_CACHE_HOME": str(folder / "cache"), **more}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--basetemp={folder / 'base'}", SERVER_TEST]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_without_go_a_laptop_skips_loudly(tmp_path: Path) -> None:
    ended = without_go(tmp_path)
    assert ended.returncode == 0, ended.stdout
    assert "1 skipped" in ended.stdout
    assert f"SKIPPED [1] {SERVER_TEST.partition('::')[0]}" in ended.stdout
    assert SAID in ended.stdout


def test_without_go_ci_fails(tmp_path: Path) -> None:
    ended = without_go(tmp_path, CI="1")
    assert ended.returncode == 1, ended.stdout
    assert "1 error" in ended.stdout
    assert SAID in ended.stdout
