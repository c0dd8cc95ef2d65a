"""Whole processes, from start to exit: wall time, CPU time and the most memory held at once."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO

_KIB = 1024


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds and bytes of one process."""

    wall: float
    cpu: float
    peak: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Several runs of one command."""

    runs: Sequence[Run]

    @property
    def wall(self) -> float:
        return median(run.wall for run in self.runs)

    @property
    def wall_min(self) -> float:
        return min(run.wall for run in self.runs)

    @property
    def cpu(self) -> float:
        return median(run.cpu for run in self.runs)

    @property
    def cpu_min(self) -> float:
        return min(run.cpu for run in self.runs)

    @property
    def peak(self) -> int:
        return max(run.peak for run in self.runs)


class Failed(Exception):
    """The measured program did not end as it should."""


def run(command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], log: IO[bytes]) -> Run:
    """Runs one process to its end.  Raises `Failed` unless it ends with 0; `log` gets what it says."""
    log.seek(0)
    log.truncate()
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)  # so that it is not waited for again
    if process.returncode != 0:
        log.seek(0)
        raise Failed(
            f"{' '.join(command)} ended with {process.returncode}:\n{log.read().decode(errors='replace')[-2000:]}"
        )
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _KIB)
