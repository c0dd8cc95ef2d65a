"""Builds run side by side, each once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from renderer.building.targets import Wanted
from renderer.kustomize import Built, Kustomize, without_component
from renderer.model import Tree
from renderer.pipeline import Settings

Progress: TypeAlias = Callable[[int, int], None]
"""Told after each build: how many are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where and with what is built: the repository on disk, a kustomize, and how many builds run at one time."""

    root: Path
    tree: Tree
    settings: Settings
    kustomize: Kustomize
    jobs: int
    progress: Progress


def run(wanted: Iterable[Wanted], work: Workplace) -> dict[Wanted, Built]:
    """What each build gave.  Raises `kustomize.Missing` where the program cannot be started."""
    built: dict[Wanted, Built] = {}
    with ThreadPoolExecutor(max_workers=work.jobs) as pool:
        running = {pool.submit(_build, one, work): one for one in sorted(wanted, key=str)}
        try:
            for done, future in enumerate(as_completed(running), start=1):
                built[running[future]] = future.result()
                work.progress(done, len(running))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return built


def _build(wanted: Wanted, work: Workplace) -> Built:
    if not wanted.without:
        return _relative(work.kustomize.build(work.root / wanted.folder), work.root)
    try:
        with without_component(work.root, wanted.folder, wanted.without) as copy:
            return _relative(work.kustomize.build(copy / wanted.folder), copy)
    except OSError as error:
        return Built("", f"the copy without our component could not be made: {error}", 1)


def _relative(built: Built, root: Path) -> Built:
    """Messages name files from the root of the repository."""
    return replace(built, err=built.err.replace(f"{root}{os.sep}", ""))
