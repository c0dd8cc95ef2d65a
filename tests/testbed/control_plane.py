"""An API server and its etcd that a test may kill, hold and start again on the same ports."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.testbed.kubernetes import Server, store_command, store_ready
from tests.testbed.processes import Process, free_port, until


class ControlPlane:
    """Both run after `start`; `admin` is good for every life of the API server."""

    def __init__(self, etcd: Path, apiserver: Path, folder: Path, arguments: Sequence[str] = ()) -> None:
        self._etcd, self._folder = etcd, folder
        self._ports = free_port(), free_port()
        self._server = Server(apiserver, self._ports[0], folder, arguments)
        self._processes: dict[str, Process] = {}
        self.admin = self._server.access(self._ports[1])

    def start(self) -> None:
        """Start what does not run, and wait until all of it answers.

        In the main thread: what a thread starts ends with it (see `tether.py`).
        """
        store, server = self._ports
        if "etcd" not in self._processes:
            self._run("etcd", store_command(self._etcd, self._folder, store))
        until(lambda: store_ready(store), "etcd", process=self._processes["etcd"])
        if "kube-apiserver" not in self._processes:
            self._run("kube-apiserver", self._server.command(server))
        until(lambda: self._server.ready(server), "kube-apiserver", process=self._processes["kube-apiserver"])

    def kill(self, *names: str) -> None:
        """End `etcd` or `kube-apiserver` as a crash would."""
        for name in names:
            self._processes.pop(name).stop()

    @contextmanager
    def held(self, name: str) -> Iterator[None]:
        """The program does nothing meanwhile, though its connections stay open."""
        pid = self._processes[name].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        self.kill(*self._processes)

    def _run(self, name: str, command: list[str | Path]) -> None:
        self._processes[name] = Process(command, self._folder, self._folder / f"{name}.log")


@contextmanager
def control_plane(etcd: Path, apiserver: Path, folder: Path, *arguments: str) -> Iterator[ControlPlane]:
    """A fresh one that runs, with further arguments of the API server."""
    found = ControlPlane(etcd, apiserver, folder, arguments)
    try:
        found.start()
        yield found
    finally:
        found.stop()
