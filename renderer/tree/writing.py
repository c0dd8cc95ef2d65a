"""Brings the output folder to what was rendered: staged first, then renamed in, whole files only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from renderer.tree.changes import Comparison


class CannotWrite(Exception):
    """Nothing was written; the message says why and what to do."""


def write(
    root: Path,
    folder: str,
    expected: Mapping[str, str],
    *,
    clusters: Collection[str] | None = None,
    wait: float = 60.0,
) -> Comparison:
    """Makes the files below `folder` equal to `expected` and returns what had to change.

    The comparison is made anew under the lock, so that two renders at once end in exactly one of their results.
    Nothing is touched where nothing differs.  Foreign files that are not in the way stay, and are in the result.
    Raises `CannotWrite`: a file in the way, a link, no permission, a full disk, or no lock within `wait` seconds.
    """
    raise NotImplementedError
