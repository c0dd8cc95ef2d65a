"""Reads the files of a work tree, and nothing outside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from renderer.model import Entry

MAX_BYTES = 16 << 20
"""The largest file that is ever loaded; callers have tighter limits of their own."""


@dataclass(frozen=True, slots=True)
class DiskTree:
    """The files below `root`, as `renderer.model.Tree`."""

    root: Path

    def list(self, folder: str) -> Sequence[Entry]:
        """The entries of a folder, sorted by name; none where the folder does not exist.  Raises `TreeError`."""
        raise NotImplementedError

    def read(self, path: str, *, limit: int = MAX_BYTES) -> bytes:
        """The bytes of a file.  Raises `TreeError`, also where the file has more than `limit` bytes."""
        raise NotImplementedError
