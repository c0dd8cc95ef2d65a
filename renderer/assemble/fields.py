"""A field of the operator object, and looking at the object that a base declares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from renderer.bases import Base
from renderer.model import Body, Component, Origin, Path, Problem, Setting
from renderer.values import Value, field


class Field(Value, frozen=True):
    """A value at a path of the operator object; a last step of `-` appends to a list."""

    path: Path
    value: Any
    origin: Origin


class Spelling(Value, frozen=True):
    """The fields that say what the settings ask for, and what stands in the way."""

    fields: list[Field] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def limits(settings: Iterable[Setting]) -> dict[Component, Setting]:
    """Those of the settings that are rate limits."""
    return {one.field: one for one in settings if isinstance(one.field, Component)}


def get(body: Any, path: Path) -> Any:
    """The value at a path; None where it is not there."""
    for step in path:
        body = body.get(step) if isinstance(body, dict) else None
    return body


def list_at(body: Body, path: Path) -> list[Any]:
    """The list at a path; empty where there is none."""
    found = get(body, path)
    return found if isinstance(found, list) else []


def place(base: Base, *path: str | int) -> str:
    """`platform/prod/hco.yaml:7`: where a field stands in the base."""
    return base.origin.below(*path).position.place
