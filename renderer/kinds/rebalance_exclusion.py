"""Fields that exclude each other, and namespaces that cannot be included: what each descheduler makes of them."""

from __future__ import annotations

from collections.abc import Iterator

from renderer.kinds.base import Site
from renderer.kinds.rebalance_spec import RebalanceSpec
from renderer.model import Origin, Problem
from renderer.releases import descheduler
from renderer.releases.descheduler_operator import OLD_POLICY, protected

_ENDS = "the descheduler would refuse its policy and end at its start"
"""Exactly one of each (v0.36.0 pkg/framework/plugins/defaultevictor/validation.go, removeduplicates/validation.go)."""


def on_operator(spec: RebalanceSpec, at: Origin) -> Iterator[Problem]:
    """On OpenShift."""
    yield from _exclusive(spec, at, thresholds=OLD_POLICY, others=OLD_POLICY)
    for index, name in enumerate(spec.namespaces.included or []):
        if protected(name):
            message = f"{name} is a protected namespace and can never be included: {OLD_POLICY}"
            place = at.below("namespaces", "included", index)
            yield Problem("rebalance/protected-namespace", place, message, "Remove it.")


def on_upstream(spec: RebalanceSpec, site: Site, at: Origin) -> Iterator[Problem]:
    """On Kubernetes."""
    yield from _exclusive(spec, at, thresholds="the descheduler's plugin takes numbers of one kind", others=_ENDS)
    owners = {
        descheduler.NAMESPACE: "Kubernetes' own namespace",
        site.operator.namespace: "KubeVirt's own namespace here",
    }
    for index, name in enumerate(spec.namespaces.included or []):
        if name in owners:
            message = f"{name} is {owners[name]}, and never evicted from: it can never be included"
            place = at.below("namespaces", "included", index)
            yield Problem("rebalance/protected-namespace", place, message, "Remove it.")


def _exclusive(spec: RebalanceSpec, at: Origin, *, thresholds: str, others: str) -> Iterator[Problem]:
    kinds, scope, priority = spec.thresholds, spec.namespaces, spec.priority_threshold
    if kinds.deviation is not None and kinds.static is not None and spec.balances_load:
        yield _one_of("deviation and static", thresholds, at.below("thresholds", "static"))
    if scope.included and scope.excluded:
        yield _one_of("included and excluded", others, at.below("namespaces", "excluded"))
    if priority is not None and priority.class_name is not None and priority.value is not None:
        yield _one_of("className and value", others, at.below("priorityThreshold", "value"))


def _one_of(fields: str, effect: str, at: Origin) -> Problem:
    message = f"{fields} exclude each other: {effect}"
    return Problem("rebalance/exclusive-fields", at, message, "Give one of the two.")
