"""Programs that a test starts and that never outlive it."""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_TETHER = Path(__file__).with_name("tether.py")
_SECONDS = 120
"""Until a server has to answer: machines that test can be slow."""
_ATTEMPTS = 3


class NotReady(Exception):
    """A server ended, or did not answer in time; the message holds the end of its log."""


def tethered(command: Sequence[str | Path]) -> list[str]:
    """The same program, which ends when this process does, however it does."""
    return [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), *map(str, command)]


class Process:
    """A program with its log.  It leads a process group of its own, which `stop` ends as a whole."""

    def __init__(
        self, command: Sequence[str | Path], folder: Path, log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.log = log
        with log.open("ab") as out:
            self._popen = subprocess.Popen(
                tethered(command),
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        atexit.register(self.stop)

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def ended(self) -> bool:
        return self._popen.poll() is not None

    def wait(self, seconds: float) -> int:
        """Its exit code.  Raises `NotReady` where it goes on for longer."""
        try:
            return self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise NotReady(f"still running after {seconds} s\n{self.tail()}") from None

    def tail(self, lines: int = 40) -> str:
        """The end of its log."""
        text = self.log.read_text(errors="replace").splitlines()
        return "\n".join([f"--- {self.log}", *text[-lines:]])

    def stop(self) -> None:
        """End it, at once: its data is thrown away in any case."""
        atexit.unregister(self.stop)
        if self._popen.poll() is None:
            os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()


def free_port() -> int:
    """A port of the loopback interface that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def until(ready: Callable[[], bool], what: str, *, process: Process | None = None, seconds: float = _SECONDS) -> None:
    """Ask again and again until it is so.  Raises `NotReady`, at once where the process has ended."""
    deadline = time.monotonic() + seconds
    while not ready():
        tail = f"\n{process.tail()}" if process else ""
        if process is not None and process.ended:
            raise NotReady(f"{what}: the process has ended{tail}")
        if time.monotonic() > deadline:
            raise NotReady(f"{what}: not within {seconds} s{tail}")
        time.sleep(0.05)


@contextmanager
def serving(
    name: str, command: Callable[[int], Sequence[str | Path]], ready: Callable[[int], bool], folder: Path
) -> Iterator[int]:
    """A server on a free port, which is given.  Where another program takes the port first, it is tried again."""
    for attempt in range(_ATTEMPTS):
        port = free_port()
        process = Process(command(port), folder, folder / f"{name}-{attempt}.log")
        try:
            try:
                until(lambda port=port: ready(port), name, process=process)  # type: ignore[misc]
            except NotReady:
                if process.ended and attempt + 1 < _ATTEMPTS:
                    continue
                raise
            yield port
            return
        finally:
            process.stop()
