"""Builds the servers from the Go modules in `modules/`, each once, into a cache outside the repository.

`python -m tests.testbed.build [TOOL…]` fills the cache ahead of the tests; they do it by themselves as well.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.processes import tethered

MODULES = Path(__file__).parent / "modules"
CACHE = "kubevirt-policy-testbed"
KUBERNETES = "1.36.3"
PROMETHEUS = "3.16.0"
DESCHEDULER = "0.36.0"

Say = Callable[[str], None]


class NoGo(Exception):
    """A program is not in the cache, and there is no `go` to build it with."""


class BuildFailed(Exception):
    """`go build` ended with an error; the message holds what it printed."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A module and how it is built: two tools may share one, where one of them is seldom needed.

    `programs` are named for the last part of their package, the tool for the first of them.
    """

    module: str
    packages: tuple[str, ...]
    tags: str = ""
    values: tuple[tuple[str, str], ...] = ()
    """Go variables that the linker sets."""

    @property
    def folder(self) -> Path:
        return MODULES / self.module

    @property
    def name(self) -> str:
        return self.programs[0]

    @property
    def programs(self) -> list[str]:
        return [self.module if package == "." else package.rpartition("/")[2] for package in self.packages]

    @property
    def arguments(self) -> list[str]:
        flags = ["-s", "-w", *(f"-X {name}={value}" for name, value in self.values)]
        tags = [f"-tags={self.tags}"] if self.tags else []
        return ["build", "-trimpath", "-buildvcs=false", *tags, f"-ldflags={' '.join(flags)}"]


_VERSION = "k8s.io/component-base/version"
_MAJOR, _MINOR, _ = KUBERNETES.split(".")
# Clients read the server's version and misbehave where there is none.
_KUBERNETES = (
    (f"{_VERSION}.gitVersion", f"v{KUBERNETES}"),
    (f"{_VERSION}.gitMajor", _MAJOR),
    (f"{_VERSION}.gitMinor", _MINOR),
)

TOOLS = {
    tool.name: tool
    for tool in (
        Tool("etcd", (".",)),
        Tool("kube-apiserver", ("k8s.io/kubernetes/cmd/kube-apiserver",), values=_KUBERNETES),
        Tool("kube-apiserver", ("k8s.io/kubernetes/cmd/kube-scheduler",), values=_KUBERNETES),
        Tool(
            "prometheus",
            ("github.com/prometheus/prometheus/cmd/prometheus", "github.com/prometheus/prometheus/cmd/promtool"),
            tags="remove_all_sd",  # the clients of all clouds, which nothing here needs
            values=(("github.com/prometheus/common/version.Version", PROMETHEUS),),
        ),
        Tool("descheduler", (".",), values=(("sigs.k8s.io/descheduler/pkg/version.version", f"v{DESCHEDULER}"),)),
    )
}


def program(name: str, say: Say) -> Path:
    """The path of a program, built now if it never was.  Raises `NoGo` and `BuildFailed`.

    `KUBEBUILDER_ASSETS`, the folder that controller-runtime's envtest uses, wins where it holds the program.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and (found := Path(assets) / name).is_file():
        return found
    tool = next(tool for tool in TOOLS.values() if name in tool.programs)
    return built(tool, cache(), say) / name


def cache() -> Path:
    """Where the built programs are kept."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / CACHE


def digest(folder: Path, arguments: list[str]) -> str:
    """What a built program depends on, in short: the files of its module, the arguments and the kind of machine."""
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        found.update(f"{path.name}\n{path.stat().st_size}\n".encode() + path.read_bytes())
    found.update("\n".join([*arguments, platform.system(), platform.machine()]).encode())
    return found.hexdigest()[:16]


def built(tool: Tool, where: Path, say: Say) -> Path:
    """The folder of the tool's programs.  Two runs at once build once: the second waits for the first."""
    folder = where / f"{tool.name}-{digest(tool.folder, [*tool.arguments, *tool.packages])}"
    if folder.is_dir():
        return folder
    where.mkdir(parents=True, exist_ok=True)
    with alone(where / f"{folder.name}.lock"):
        if not folder.is_dir():
            _build(tool, folder, say)
    return folder


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Held by one process at a time; the system lets go of it however the process ends."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(tool: Tool, folder: Path, say: Say) -> None:
    go = shutil.which("go")
    if go is None:
        raise NoGo(f"{' and '.join(tool.programs)} cannot be built: there is no `go` on PATH (https://go.dev/dl)")
    say(f"building {' and '.join(tool.programs)}; this takes minutes, once")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as aside:
        fresh = Path(aside) / "programs"
        fresh.mkdir()
        for package, name in zip(tool.packages, tool.programs, strict=True):
            _run([*_gently(), go, *tool.arguments, "-o", str(fresh / name), package], tool.folder)
        fresh.rename(folder)
    say(f"built {' and '.join(tool.programs)} in {time.monotonic() - started:.0f} s")


def _gently() -> list[str]:
    """Other tests run meanwhile, and some look at the clock."""
    nice = shutil.which("nice")
    return [nice, "-n", "10"] if nice else []


def _run(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "GOWORK": "off"}
    ended = subprocess.run(
        tethered(command),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise BuildFailed(f"{' '.join(command)}\n{ended.stdout}{ended.stderr}")


def main(names: list[str]) -> int:
    """Fill the cache.  Exit code 2 where that cannot be done."""
    try:
        for name in names or TOOLS:
            sys.stdout.write(f"{built(TOOLS[name], cache(), _say)}\n")
    except (NoGo, BuildFailed) as error:
        _say(str(error))
        return 2
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"test bed: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
