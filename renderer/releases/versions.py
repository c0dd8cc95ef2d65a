"""Version numbers as people write them, and the look-up of a minor release in a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Generic, TypeVar

from renderer.values import Value

R = TypeVar("R")

_VERSION = re.compile(r"(0|[1-9][0-9]{0,4})\.(0|[1-9][0-9]{0,4})(?:\.(0|[1-9][0-9]{0,4}))?")


class Version(Value, frozen=True):
    """MAJOR.MINOR[.PATCH]; `patch` is None where it was not given.

    Versions have no order: without its patch one may be before or after another of its minor.  Compare `release`.
    """

    major: int
    minor: int
    patch: int | None = None

    @property
    def release(self) -> tuple[int, int]:
        """The minor release, to be compared with others of the same product."""
        return self.major, self.minor

    @property
    def name(self) -> str:
        """The minor release, as it stands in the tables."""
        return f"{self.major}.{self.minor}"

    def __str__(self) -> str:
        return self.name if self.patch is None else f"{self.name}.{self.patch}"


def parse(text: str) -> Version | None:
    """The version that a text names; None where it is not MAJOR.MINOR[.PATCH]."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    major, minor, patch = found.groups()
    return Version(int(major), int(minor), int(patch) if patch else None)


class Known(Value, Generic[R], frozen=True):
    """A release found in its table; `newer` where the newest known one stands in for an unknown newer one."""

    release: R
    version: Version
    newer: bool = False


def look_up(table: Mapping[str, R], version: Version, *, allow_newer: bool) -> Known[R] | None:
    """The table's entry for that minor release, or for the newest one if `allow_newer` and it is newer than all."""
    if version.name in table:
        return Known(table[version.name], version)
    newest = parse(list(table)[-1])
    if allow_newer and newest is not None and version.release > newest.release:
        return Known(table[newest.name], newest, newer=True)
    return None
