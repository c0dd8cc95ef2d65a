"""What frozen values are made from."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

__all__ = ["Value", "field", "replace"]


class Value(Struct, frozen=True):
    """A value that never changes.

    What a frozen dataclass with slots is, but that the class itself takes 20 microseconds to make instead
    of a millisecond: with some seventy of them, that is a third of the time a small fleet takes.
    """
