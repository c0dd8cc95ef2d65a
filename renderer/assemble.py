"""Settings to the fields of the operator object, in the words of the releases that must accept them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from renderer.bases import Base
from renderer.bases.patching import APPEND, pointer
from renderer.kinds.base import Site
from renderer.model import Body, Component, Limit, Origin, Path, Problem, Setting, Via, folded
from renderer.releases import hyperconverged, kubevirt
from renderer.releases.hyperconverged import JSONPATCH_ANNOTATION, TUNING_ANNOTATION
from renderer.values import Value, field

_LIMITS = {f"limits.{component}": component for component in Component}


class Field(Value, frozen=True):
    """A value at a path of the operator object; a last step of `-` appends to a list."""

    path: Path
    value: Any
    origin: Origin


class Spelling(Value, frozen=True):
    """The fields that say what the settings ask for, and what stands in the way."""

    fields: list[Field] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class _Operation(Value, frozen=True):
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


def spell(settings: Sequence[Setting], site: Site, base: Base | None) -> Spelling:
    """How the site's releases spell the settings; every field is accepted by all of them."""
    if site.releases[0].hyperconverged is None:
        return _spell_kubevirt(settings, site, base)
    return _spell_hyperconverged(settings, site, base)


# KubeVirt without HyperConverged: the fields themselves.


def _spell_kubevirt(settings: Sequence[Setting], site: Site, base: Base | None) -> Spelling:
    out = Spelling()
    for setting in settings:
        out.fields.extend(_kubevirt_fields(setting, site, base))
    if base is None:
        out.problems.extend(_lists_need_a_base(out.fields))
    else:
        out.problems.extend(_replica_conflicts(settings, base))
    return out


def _kubevirt_fields(setting: Setting, site: Site, base: Base | None) -> Iterator[Field]:
    if setting.field in _LIMITS:
        path = kubevirt.limiter(_LIMITS[setting.field]).path
        yield Field((*path, "qps"), setting.value.qps, setting.origin)
        yield Field((*path, "burst"), setting.value.burst, setting.origin)
    elif setting.field == "virtApi.replicas":
        yield Field(kubevirt.COMPONENT_PATCHES.path, kubevirt.replicas_patch(setting.value), setting.origin)
    else:
        yield Field(kubevirt.REFERENCE_POLICY.path, setting.value, setting.origin)
        gate = kubevirt.REFERENCE_POLICY_GATE
        if _gated(site) and gate not in _list(base.body if base else {}, kubevirt.GATES.path[:-1]):
            yield Field(kubevirt.GATES.path, gate, setting.origin)


def _gated(site: Site) -> bool:
    return any(release.kubevirt.gated for release in site.releases)


def _lists_need_a_base(fields: Sequence[Field]) -> Iterator[Problem]:
    for one in fields:
        if one.path[-1] == APPEND:
            yield Problem(
                "base/required",
                one.origin,
                f"this needs an entry in {folded(one.path[:-1])}, and server-side apply replaces that list whole: "
                "other entries would be erased",
                "Give the clusters operatorResource.base, so that the entry is added to what the base declares.",
            )


def _replica_conflicts(settings: Sequence[Setting], base: Base) -> Iterator[Problem]:
    setting = next((one for one in settings if one.field == "virtApi.replicas"), None)
    if setting is None:
        return
    fixed = _get(base.body, ("spec", "infra", "replicas"))
    if fixed is not None:
        place = _place(base, "spec", "infra", "replicas")
        message = f"{place} sets spec.infra.replicas to {fixed}, which wins over virt-api's own number"
        yield Problem("base/conflict", setting.origin, message, "Remove one of the two.")
    for index, patch in enumerate(_list(base.body, kubevirt.COMPONENT_PATCHES.path[:-1])):
        if (
            isinstance(patch, dict)
            and patch.get("resourceName") == "virt-api"
            and "/spec/replicas" in str(patch.get("patch"))
        ):
            place = _place(base, *kubevirt.COMPONENT_PATCHES.path[:-1], index)
            yield Problem(
                "base/conflict",
                setting.origin,
                f"{place} already patches virt-api's replicas",
                "Remove one of the two.",
            )


# With HyperConverged: its own fields where it has them, else its JSON patch annotation.


def _spell_hyperconverged(settings: Sequence[Setting], site: Site, base: Base | None) -> Spelling:
    out = Spelling()
    limits = {_LIMITS[one.field]: one for one in settings if one.field in _LIMITS}
    tuning = (
        _one_limit(limits) if all(r.hyperconverged and r.hyperconverged.tuning_policy for r in site.releases) else None
    )
    operations: list[_Operation] = []
    if tuning is not None:
        out.fields.extend(_tuning_fields(tuning, site))
    for setting in settings:
        if setting.field == "instancetype.referencePolicy" and setting.via is Via.FIELD:
            out.fields.append(
                Field(hyperconverged.REFERENCE_POLICY[site.operator.api_version], setting.value, setting.origin)
            )
        elif setting.field not in _LIMITS or tuning is None:
            operations.extend(_operations(setting, site))
    operations.sort(key=lambda operation: operation.where)
    if base is not None:
        out.problems.extend(_hidden_replicas(settings, base))
    out.problems.extend(_tuning_conflicts(tuning, limits, base))
    if operations:
        merged = _merged(operations, base)
        out.problems.extend(merged.problems)
        out.fields.extend(merged.fields)
        out.problems.extend(_unsafe(operations, merged.fields, site))
    return out


def _one_limit(limits: Mapping[Component, Setting]) -> Setting | None:
    """The setting of any component, if all four ask for the same limit."""
    same = len(limits) == len(Component) and len({one.value for one in limits.values()}) == 1
    return limits[Component.API] if same else None


def _tuning_fields(setting: Setting, site: Site) -> Iterator[Field]:
    limit: Limit = setting.value
    annotation = _json({"qps": limit.qps, "burst": limit.burst})
    yield Field(("metadata", "annotations", TUNING_ANNOTATION), annotation, setting.origin)
    yield Field(hyperconverged.TUNING_POLICY[site.operator.api_version], "annotation", setting.origin)


def _operations(setting: Setting, site: Site) -> Iterator[_Operation]:
    if setting.field in _LIMITS:
        limiter = kubevirt.limiter(_LIMITS[setting.field])
        yield _operation(limiter, {"qps": setting.value.qps, "burst": setting.value.burst}, setting)
    elif setting.field == "virtApi.replicas":
        yield _operation(kubevirt.COMPONENT_PATCHES, kubevirt.replicas_patch(setting.value), setting)
    else:
        yield _operation(kubevirt.REFERENCE_POLICY, setting.value, setting)
        ungated = [
            r for r in site.releases if r.kubevirt.gated and not (r.hyperconverged and r.hyperconverged.sets_gate)
        ]
        if ungated:
            yield _operation(kubevirt.GATES, kubevirt.REFERENCE_POLICY_GATE, setting)


def _operation(place: kubevirt.Field, value: Any, setting: Setting) -> _Operation:
    for step in reversed(place.path[place.depth :]):
        value = [value] if step == APPEND else {step: value}
    return _Operation(place.path[: place.depth], value, setting)


def _tuning_conflicts(
    tuning: Setting | None, limits: Mapping[Component, Setting], base: Base | None
) -> Iterator[Problem]:
    """The tuning policy and limits of single components do not combine: HyperConverged shares one pair for all four."""
    if base is None or not limits:
        return
    if tuning is None:
        for path in hyperconverged.TUNING_POLICY.values():
            if _get(base.body, path) is not None:
                message = (
                    f"{_place(base, *path)} sets {folded(path)}, which overrides limits of single components, or is "
                    "overridden by virt-handler's for all of them"
                )
                yield Problem("base/conflict", next(iter(limits.values())).origin, message, "Remove it from the base.")
        return
    for operation in _existing(base)[0]:
        where = str(operation.get("path"))
        if any(_overlap(where, pointer(kubevirt.limiter(component).path)) for component in Component):
            message = (
                f"{_annotation_place(base)} changes {where} beside the tuning policy: the one would undo the other"
            )
            yield Problem("base/conflict", tuning.origin, message, "Remove that operation from the base.")


def _hidden_replicas(settings: Sequence[Setting], base: Base) -> Iterator[Problem]:
    """spec.infra.replicas, which HyperConverged can only get from its JSON patch annotation, wins over ours."""
    for setting in settings:
        for operation in _existing(base)[0] if setting.field == "virtApi.replicas" else ():
            where, value = str(operation.get("path")), operation.get("value")
            within = where == "/spec/infra" and isinstance(value, dict) and "replicas" in value
            if within or where == "/spec/infra/replicas":
                message = f"{_annotation_place(base)} sets {where}, and its replicas win over virt-api's own number"
                yield Problem("base/conflict", setting.origin, message, "Remove one of the two.")


def _merged(operations: Sequence[_Operation], base: Base | None) -> Spelling:
    """The annotation with the operations of the base first and ours after them, as one valid list."""
    existing, problems = _existing(base) if base else ([], [])
    for theirs in existing:
        for ours in operations:
            appends = ours.path[-1] == APPEND and theirs != ours.body
            if base and not appends and _overlap(str(theirs.get("path")), ours.where):
                there = f"{_annotation_place(base)} already has an operation on {theirs.get('path')}"
                message = f"{there}; ours is on {ours.where}"
                problems.append(Problem("base/conflict", ours.setting.origin, message, "Remove one of the two."))
    value = _json([*existing, *(operation.body for operation in operations)])
    path = ("metadata", "annotations", JSONPATCH_ANNOTATION)
    return Spelling([Field(path, value, operations[0].setting.origin)], problems)


def _existing(base: Base) -> tuple[list[Body], list[Problem]]:
    """The operations in the base's own annotation, as parsed values."""
    text = _get(base.body, ("metadata", "annotations", JSONPATCH_ANNOTATION))
    if text is None or not str(text).strip():
        return [], []
    origin = base.origin.below("metadata", "annotations", JSONPATCH_ANNOTATION)
    try:
        parsed = json.loads(str(text))
    except (ValueError, RecursionError) as error:
        message = f"{JSONPATCH_ANNOTATION} is not valid JSON: {error}"
        return [], [Problem("base/unreadable", origin, message, "Mend it: HyperConverged refuses the object as it is.")]
    if parsed is None:
        return [], []
    if not isinstance(parsed, list) or not all(isinstance(item, dict) for item in parsed):
        message = f"{JSONPATCH_ANNOTATION} is not a list of operations"
        return [], [Problem("base/unreadable", origin, message, "Write a JSON list of operations.")]
    return parsed, []


def _unsafe(operations: Sequence[_Operation], fields: Sequence[Field], site: Site) -> Iterator[Problem]:
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


def _overlap(one: str, other: str) -> bool:
    """Whether two JSON pointers are the same place, or one lies below the other."""
    first, second = one.split("/"), other.split("/")
    shortest = min(len(first), len(second))
    return first[:shortest] == second[:shortest]


def _get(body: Any, path: Path) -> Any:
    for step in path:
        body = body.get(step) if isinstance(body, dict) else None
    return body


def _list(body: Body, path: Path) -> list[Any]:
    found = _get(body, path)
    return found if isinstance(found, list) else []


def _place(base: Base, *path: str | int) -> str:
    position = base.origin.below(*path).position
    return f"{position.file}:{position.line}"


def _annotation_place(base: Base) -> str:
    return _place(base, "metadata", "annotations", JSONPATCH_ANNOTATION)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
