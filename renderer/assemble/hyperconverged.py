"""With HyperConverged: its own fields where it has them, else its JSON patch annotation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from renderer.assemble.annotation import (
    Operation,
    annotation_place,
    compact,
    existing,
    merged,
    overlap,
    touched,
    unsafe,
)
from renderer.assemble.fields import Field, Spelling, get, limits, place
from renderer.bases import Base
from renderer.bases.patching import APPEND, pointer
from renderer.kinds.base import OperatorRelease, Site
from renderer.model import Body, Component, Limit, OperatorField, Problem, Setting, Via, folded
from renderer.releases import hyperconverged, kubevirt
from renderer.releases.hyperconverged import TUNING_ANNOTATION


def spell(settings: Sequence[Setting], site: Site, base: Base | None) -> Spelling:
    """The fields of the HyperConverged object."""
    out = Spelling()
    asked = limits(settings)
    tuning = (
        _one_limit(asked) if all(r.hyperconverged and r.hyperconverged.tuning_policy for r in site.releases) else None
    )
    operations: list[Operation] = []
    if tuning is not None:
        out.fields.extend(_tuning_fields(tuning, site))
    for setting in settings:
        if setting.field is OperatorField.REFERENCE_POLICY and setting.via is Via.FIELD:
            out.fields.append(
                Field(hyperconverged.REFERENCE_POLICY[site.operator.api_version], setting.value, setting.origin)
            )
        elif not isinstance(setting.field, Component) or tuning is None:
            operations.extend(_operations(setting, site))
    operations.sort(key=lambda operation: operation.where)
    present: Sequence[Body] = ()
    if base is not None and settings:
        present, problems = existing(base)
        out.problems.extend(problems)
        out.problems.extend(_hidden_replicas(settings, present, base))
        out.problems.extend(_tuning_conflicts(tuning, asked, present, base))
    if operations:
        whole = merged(operations, present, base, site)
        out.problems.extend(whole.problems)
        out.fields.extend(whole.fields)
        out.problems.extend(unsafe(operations, whole.fields, site))
    return out


def own_limits(base: Base) -> Iterator[str]:
    """The tuning policy of the base, and operations of its annotation on rate limiters, each with its place."""
    for path in hyperconverged.TUNING_POLICY.values():
        if get(base.body, path):
            yield f"{folded(path)} in {place(base, *path)}"
    limiters = [pointer(kubevirt.limiter(component).path) for component in Component]
    for where in dict.fromkeys(str(operation["path"]) for operation in existing(base)[0]):
        if any(overlap(where, limiter) for limiter in limiters):
            yield f"{where} in {annotation_place(base)}"


def _one_limit(asked: Mapping[Component, Setting]) -> Setting | None:
    """The setting of any component, if all four ask for the same limit."""
    same = len(asked) == len(Component) and len({one.value for one in asked.values()}) == 1
    return asked[Component.API] if same else None


def _tuning_fields(setting: Setting, site: Site) -> Iterator[Field]:
    limit: Limit = setting.value
    annotation = compact({"qps": limit.qps, "burst": limit.burst})
    yield Field(("metadata", "annotations", TUNING_ANNOTATION), annotation, setting.origin)
    yield Field(hyperconverged.TUNING_POLICY[site.operator.api_version], "annotation", setting.origin)


def _operations(setting: Setting, site: Site) -> Iterator[Operation]:
    match setting.field:
        case Component() as component:
            limit = {"qps": setting.value.qps, "burst": setting.value.burst}
            yield _operation(kubevirt.limiter(component), limit, setting)
        case OperatorField.REPLICAS:
            yield _operation(kubevirt.COMPONENT_PATCHES, kubevirt.replicas_patch(setting.value), setting)
        case OperatorField.REFERENCE_POLICY:
            yield _operation(kubevirt.REFERENCE_POLICY, setting.value, setting)
            if any(_lacks_gate(release) for release in site.releases):
                yield _operation(kubevirt.GATES, kubevirt.REFERENCE_POLICY_GATE, setting)
        case _:
            assert_never(setting.field)


def _lacks_gate(release: OperatorRelease) -> bool:
    """Whether KubeVirt needs the gate, and nobody else sets it."""
    return release.kubevirt.gated and not (release.hyperconverged and release.hyperconverged.sets_gate)


def _operation(place: kubevirt.Field, value: Any, setting: Setting) -> Operation:
    for step in reversed(place.path[place.depth :]):
        value = [value] if step == APPEND else {step: value}
    return Operation(place.path[: place.depth], value, setting)


def _tuning_conflicts(
    tuning: Setting | None, asked: Mapping[Component, Setting], present: Sequence[Body], base: Base
) -> Iterator[Problem]:
    """The tuning policy and limits of single components do not combine: HyperConverged shares one pair for all four."""
    if not asked:
        return
    if tuning is None:
        for path in hyperconverged.TUNING_POLICY.values():
            if get(base.body, path) is not None:
                message = (
                    f"{place(base, *path)} sets {folded(path)}, which overrides limits of single components, or is "
                    "overridden by virt-handler's for all of them"
                )
                yield Problem("base/conflict", next(iter(asked.values())).origin, message, "Remove it from the base.")
        return
    limiters = [pointer(kubevirt.limiter(component).path) for component in Component]
    for where in (where for operation in present for where in touched(operation)):
        if any(overlap(where, limiter) for limiter in limiters):
            message = f"{annotation_place(base)} changes {where} beside the tuning policy: the one would undo the other"
            yield Problem("base/conflict", tuning.origin, message, "Remove that operation from the base.")


def _hidden_replicas(settings: Sequence[Setting], present: Sequence[Body], base: Base) -> Iterator[Problem]:
    """spec.infra.replicas, which HyperConverged can only get from its JSON patch annotation, wins over ours."""
    for setting in settings:
        for operation in present if setting.field is OperatorField.REPLICAS else ():
            where, value = operation["path"], operation.get("value")
            unseen = operation["op"] in ("move", "copy")
            within = where == "/spec/infra" and (unseen or (isinstance(value, dict) and "replicas" in value))
            if within or where == "/spec/infra/replicas":
                message = f"{annotation_place(base)} sets {where}, and its replicas win over virt-api's own number"
                yield Problem("base/conflict", setting.origin, message, "Remove one of the two.")
