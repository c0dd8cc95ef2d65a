"""KubeVirt without HyperConverged: settings are fields of its own object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from renderer.assemble.fields import Field, Spelling, get, list_at, place
from renderer.bases import Base
from renderer.bases.patching import APPEND
from renderer.kinds.base import Site
from renderer.model import Component, OperatorField, Problem, Setting, folded
from renderer.releases import kubevirt


def spell(settings: Sequence[Setting], site: Site, base: Base | None) -> Spelling:
    """The fields of the KubeVirt object; entries of lists that are replaced whole need a base."""
    out = Spelling()
    for setting in settings:
        out.fields.extend(_kubevirt_fields(setting, site, base))
    if base is None:
        out.problems.extend(_lists_need_a_base(out.fields))
    else:
        out.problems.extend(_replica_conflicts(settings, base))
    return out


def _kubevirt_fields(setting: Setting, site: Site, base: Base | None) -> Iterator[Field]:
    match setting.field:
        case Component() as component:
            path = kubevirt.limiter(component).path
            yield Field((*path, "qps"), setting.value.qps, setting.origin)
            yield Field((*path, "burst"), setting.value.burst, setting.origin)
        case OperatorField.REPLICAS:
            yield Field(kubevirt.COMPONENT_PATCHES.path, kubevirt.replicas_patch(setting.value), setting.origin)
        case OperatorField.REFERENCE_POLICY:
            yield Field(kubevirt.REFERENCE_POLICY.path, setting.value, setting.origin)
            gate = kubevirt.REFERENCE_POLICY_GATE
            if _gated(site) and gate not in list_at(base.body if base else {}, kubevirt.GATES.path[:-1]):
                yield Field(kubevirt.GATES.path, gate, setting.origin)
        case _:
            assert_never(setting.field)


def own_limits(base: Base) -> Iterator[str]:
    """The rate limiters of the base, each with its place."""
    for component in Component:
        path = kubevirt.limiter(component).path[:-1]
        if get(base.body, path):
            yield f"{folded(path)} in {place(base, *path)}"


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
    setting = next((one for one in settings if one.field is OperatorField.REPLICAS), None)
    if setting is None:
        return
    fixed = get(base.body, ("spec", "infra", "replicas"))
    if fixed is not None:
        there = place(base, "spec", "infra", "replicas")
        message = f"{there} sets spec.infra.replicas to {fixed}, which wins over virt-api's own number"
        yield Problem("base/conflict", setting.origin, message, "Remove one of the two.")
    for index, patch in enumerate(list_at(base.body, kubevirt.COMPONENT_PATCHES.path[:-1])):
        if (
            isinstance(patch, dict)
            and patch.get("resourceName") == "virt-api"
            and "/spec/replicas" in str(patch.get("patch"))
        ):
            there = place(base, *kubevirt.COMPONENT_PATCHES.path[:-1], index)
            yield Problem(
                "base/conflict",
                setting.origin,
                f"{there} already patches virt-api's replicas",
                "Remove one of the two.",
            )
