"""The JSON 6902 patch that brings wanted fields onto an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from renderer.model import Body, Path

Operation: TypeAlias = dict[str, Any]
"""One JSON 6902 operation: op, path and value."""


class FieldError(ValueError):
    """A wanted field lies below something that is neither a mapping nor a list."""

    def __init__(self, path: Path, found: object) -> None:
        super().__init__(path, found)
        self.path = path
        self.found = found


def operations(body: Body, fields: Sequence[tuple[Path, Any]]) -> list[Operation]:
    """The operations that give `body` these fields, ordered by path.

    A field that exists is replaced, also by an equal value: it is ours from then on.  A missing parent is added
    once, with all our values below it.  The last step `-` appends to a list.  Raises `FieldError`.
    """
    raise NotImplementedError


def apply(body: Body, patch: Sequence[Operation]) -> Body:
    """A copy of the object with the operations applied.  Raises `jsonpatch.JsonPatchException`."""
    raise NotImplementedError
