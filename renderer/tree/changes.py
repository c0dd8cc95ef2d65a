"""Tells what on disk differs from what was rendered, and whose each file is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class State(StrEnum):
    """How a path below the output folder differs from what was rendered."""

    MISSING = "missing"
    STALE = "stale"
    EDITED = "edited"
    ORPHANED = "orphaned"
    FOREIGN = "foreign"
    NEWER = "newer"


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs: its text on disk and as rendered, both with LF; None where there is none.

    `blocking`: it stands where a file must be written but may not be replaced, and `reason` tells why.
    """

    path: str
    state: State
    before: str | None = None
    after: str | None = None
    reason: str = ""
    blocking: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs, in order of path; and our own files that lie on disk with CRLF line ends, equal or not."""

    changes: tuple[Change, ...] = ()
    crlf: tuple[str, ...] = ()

    @property
    def blocking(self) -> tuple[Change, ...]:
        """What must be moved away by hand before anything can be written."""
        return tuple(change for change in self.changes if change.blocking)


def compare(
    root: Path, folder: str, expected: Mapping[str, str], *, clusters: Collection[str] | None = None
) -> Comparison:
    """Compares the files below `folder` with `expected`, which maps paths from the root to whole texts.

    With `clusters`, only `folder/<cluster>/…` and `folder/_*/<cluster>…` are looked at.
    Raises `TreeError` where `folder` itself is a link, or no folder, or cannot be read.
    """
    raise NotImplementedError
