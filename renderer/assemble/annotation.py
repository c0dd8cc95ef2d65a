"""HyperConverged's JSON patch annotation: all needs, and those of the base, in one valid, ordered list."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from renderer.assemble import jsonpatches
from renderer.assemble.fields import Field, Spelling, get, place
from renderer.bases import Base
from renderer.bases.patching import APPEND, pointer
from renderer.kinds.base import Site
from renderer.model import Body, Path, Problem, Setting
from renderer.releases.hyperconverged import JSONPATCH_ANNOTATION
from renderer.values import Value
from renderer.words import counted


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


def merged(operations: Sequence[Operation], present: Sequence[Body], base: Base | None, site: Site) -> Spelling:
    """The annotation with the operations of the base first and ours after them, as one valid list."""
    problems = [] if base is None else list(_conflicts(operations, present, base))
    value = compact([*present, *(operation.body for operation in operations)])
    path = ("metadata", "annotations", JSONPATCH_ANNOTATION)
    if base is not None and site.substitution and "${" in value:
        # Flux fills it in as text, after us: a value with a quote or a brace would break the list, ours included.
        message = f"{JSONPATCH_ANNOTATION} holds ${{…}}, which Flux would replace in what is rendered from it"
        help = "Write the value itself, or set it outside this annotation."
        problems.append(Problem("base/conflict", base.origin.below(*path), message, help))
    return Spelling([Field(path, value, operations[0].setting.origin)], problems)


def _conflicts(operations: Sequence[Operation], present: Sequence[Body], base: Base) -> Iterator[Problem]:
    for theirs in present:
        for ours in operations:
            for where in touched(theirs):
                if overlap(where, ours.where) and not _leaves_room(theirs, ours):
                    there = f"{annotation_place(base)} already has an operation on {where}"
                    message = f"{there}; ours is on {ours.where}"
                    yield Problem("base/conflict", ours.setting.origin, message, "Remove one of the two.")


def _leaves_room(theirs: Body, ours: Operation) -> bool:
    """Whether ours still appends to the list that theirs works on."""
    return ours.path[-1] == APPEND and theirs != ours.body and theirs["op"] not in ("remove", "move")


def touched(operation: Body) -> Sequence[str]:
    """The pointers that an operation reads or changes."""
    return [operation[key] for key in ("path", "from") if key in operation]


def existing(base: Base) -> tuple[list[Body], list[Problem]]:
    """The operations in the base's own annotation as parsed values, or why HyperConverged would not apply them."""
    text = get(base.body, ("metadata", "annotations", JSONPATCH_ANNOTATION))
    if text is None or not str(text).strip():
        return [], []
    origin = base.origin.below("metadata", "annotations", JSONPATCH_ANNOTATION)
    try:
        parsed = jsonpatches.parse(str(text))
    except jsonpatches.Invalid as error:
        return [], [Problem(error.code, origin, f"{JSONPATCH_ANNOTATION} {error}", error.help)]
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
            f"this needs {counted(len(own), 'operation')} in {JSONPATCH_ANNOTATION}: {site.releases[0].name} reports "
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


def compact(value: Any) -> str:
    """JSON on one line, as HyperConverged reads it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
