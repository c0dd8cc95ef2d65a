"""HyperConverged's JSON patch annotation: all needs, and those of the base, in one valid, ordered list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from renderer.assemble.fields import Field, Spelling, get, place
from renderer.bases import Base
from renderer.bases.patching import APPEND, pointer
from renderer.kinds.base import Site
from renderer.model import Body, Path, Problem, Setting
from renderer.releases.hyperconverged import JSONPATCH_ANNOTATION
from renderer.values import Value


class Operation(Value, frozen=True):
    """One JSON 6902 operation for HyperConverged's annotation, and the setting that needs it."""

    path: Path
    value: Any
    setting: Setting

    @property
    def where(self) -> str:
        return pointer(self.path)

    @property
    def body(self) -> Body:
        return {"op": "add", "path": self.where, "value": self.value}


def merged(operations: Sequence[Operation], base: Base | None) -> Spelling:
    """The annotation with the operations of the base first and ours after them, as one valid list."""
    present, problems = existing(base) if base else ([], [])
    for theirs in present:
        for ours in operations:
            appends = ours.path[-1] == APPEND and theirs != ours.body
            if base and not appends and overlap(str(theirs.get("path")), ours.where):
                there = f"{annotation_place(base)} already has an operation on {theirs.get('path')}"
                message = f"{there}; ours is on {ours.where}"
                problems.append(Problem("base/conflict", ours.setting.origin, message, "Remove one of the two."))
    value = compact([*present, *(operation.body for operation in operations)])
    path = ("metadata", "annotations", JSONPATCH_ANNOTATION)
    return Spelling([Field(path, value, operations[0].setting.origin)], problems)


def existing(base: Base) -> tuple[list[Body], list[Problem]]:
    """The operations in the base's own annotation, as parsed values."""
    text = get(base.body, ("metadata", "annotations", JSONPATCH_ANNOTATION))
    if text is None or not str(text).strip():
        return [], []
    origin = base.origin.below("metadata", "annotations", JSONPATCH_ANNOTATION)
    try:
        parsed = json.loads(str(text), parse_constant=_not_json)
    except (ValueError, RecursionError) as error:
        where = (
            f", from its line {error.lineno}, column {error.colno} on"
            if isinstance(error, json.JSONDecodeError)
            else ""
        )
        message = f"{JSONPATCH_ANNOTATION} is not valid JSON{where}"
        return [], [Problem("base/unreadable", origin, message, "Mend it: HyperConverged refuses the object as it is.")]
    if parsed is None:
        return [], []
    if not isinstance(parsed, list) or not all(isinstance(item, dict) for item in parsed):
        message = f"{JSONPATCH_ANNOTATION} is not a list of operations"
        return [], [Problem("base/unreadable", origin, message, "Write a JSON list of operations.")]
    return parsed, []


def unsafe(operations: Sequence[Operation], fields: Sequence[Field], site: Site) -> Iterator[Problem]:
    operator = site.releases[0].hyperconverged
    metric, total = operator.unsafe_metric if operator else "", len(json.loads(fields[0].value))
    for subject in dict.fromkeys(operation.setting.subject for operation in operations):
        own = [operation for operation in operations if operation.setting.subject == subject]
        setting = own[0].setting
        yield Problem(
            f"{subject}/unsafe-modification",
            setting.origin,
            f"this needs {_plural(len(own), 'operation')} in {JSONPATCH_ANNOTATION}: {site.releases[0].name} reports "
            f"TaintedConfiguration and fires UnsupportedHCOModification (severity info, {metric} {total})",
            "Expected as long as the policy is there; HyperConverged asks to remove the annotation before an upgrade.",
        )
        if site.operator.form == "partial" and not setting.replaces_annotation:
            yield Problem(
                f"{subject}/replaces-annotation",
                setting.origin,
                f"with form partial, {JSONPATCH_ANNOTATION} replaces whatever the object has there",
                "Write acknowledge: [replaces-annotation] once nothing else sets it, or give the clusters a base.",
            )


def overlap(one: str, other: str) -> bool:
    """Whether two JSON pointers are the same place, or one lies below the other."""
    first, second = one.split("/"), other.split("/")
    shortest = min(len(first), len(second))
    return first[:shortest] == second[:shortest]


def annotation_place(base: Base) -> str:
    """Where the base has the annotation."""
    return place(base, "metadata", "annotations", JSONPATCH_ANNOTATION)


def _not_json(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def compact(value: Any) -> str:
    """JSON on one line, as HyperConverged reads it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
