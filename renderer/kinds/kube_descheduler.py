"""A `RebalancePolicy` in the words of the descheduler operator: the `KubeDescheduler` object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from renderer.kinds.rebalance_spec import Query, RebalanceSpec
from renderer.model import Body
from renderer.releases import descheduler_operator as operator
from renderer.releases.descheduler_operator import Schema, Tainter
from renderer.releases.operator_metrics import METRICS, QUERY_PREFIX


def body(spec: RebalanceSpec, schemas: Sequence[Schema], annotations: dict[str, str]) -> Body:
    """The object, with every field written out whose default changes from release to release.

    Only fields that all of the schemas have; what the policy needs beyond them has been refused before.
    """
    return {
        "apiVersion": operator.API_VERSION,
        "kind": "KubeDescheduler",
        "metadata": {
            "name": operator.NAME,
            "namespace": operator.NAMESPACE,
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "managementState": "Managed",
            "mode": spec.mode,
            "deschedulingIntervalSeconds": spec.interval_seconds,
            "profiles": [operator.spelled(name, schemas) or name for name in spec.profiles],
            **_part("evictionLimits", _limits(spec, schemas)),
            **_part("profileCustomizations", dict(_customizations(spec, schemas))),
        },
    }


def _part(name: str, value: dict[str, Any]) -> dict[str, Any]:
    return {name: value} if value else {}


def _limits(spec: RebalanceSpec, schemas: Sequence[Schema]) -> dict[str, Any]:
    wanted = {"total": spec.total, "node": spec.per_node}
    return {name: value for name, value in wanted.items() if all(name in one.limits for one in schemas)}


def _customizations(spec: RebalanceSpec, schemas: Sequence[Schema]) -> Iterator[tuple[str, Any]]:
    """Every customization that is wanted, as far as all of the schemas have it."""
    for name, value in _wanted(spec, schemas):
        if all(name in one.customizations for one in schemas):
            yield name, value


def _wanted(spec: RebalanceSpec, schemas: Sequence[Schema]) -> Iterator[tuple[str, Any]]:
    yield "devEnableEvictionsInBackground", True
    if spec.metric is not None:
        yield "devActualUtilizationProfile", utilization(spec.metric)
    if spec.balances_load and spec.deviation is not None:
        yield "devDeviationThresholds", spec.deviation
    # Where the CRD has a default it would stay in the object for ever, and forbid a deviation after the upgrade:
    # a field that we own can be dropped.
    if (spec.balances_load or any(one.low_default for one in schemas)) and spec.static is not None:
        yield "devLowNodeUtilizationThresholds", spec.static
    if "CompactAndScale" in spec.profiles:
        yield "devHighNodeUtilizationThresholds", operator.COMPACT[0]
    if spec.soft_taint is not None and spec.soft_taint.mode == "Enforce" and schemas[0].tainter is Tainter.SWITCH:
        yield "devEnableSoftTainter", True
    yield from _scope(spec)
    if spec.migration_cooldown is not None:
        yield "devMigrationCooldown", spec.migration_cooldown.base
        yield "devMaxMigrationCooldown", spec.migration_cooldown.max
        yield "devMigrationHistoryWindow", spec.migration_cooldown.window


def _scope(spec: RebalanceSpec) -> Iterator[tuple[str, Any]]:
    if spec.namespaces.excluded:
        yield "namespaces", {"excluded": spec.namespaces.excluded}
    if spec.namespaces.included:
        yield "namespaces", {"included": spec.namespaces.included}
    if spec.priority_threshold is not None:
        if spec.priority_threshold.class_name is not None:
            yield "thresholdPriorityClassName", spec.priority_threshold.class_name
        if spec.priority_threshold.value is not None:
            yield "thresholdPriority", spec.priority_threshold.value
    if "LifecycleAndUtilization" in spec.profiles:
        yield "podLifetime", spec.pod_lifetime or "24h"


def utilization(metric: str | Query) -> str:
    """The operator's word for a metric."""
    if isinstance(metric, Query):
        return f"{QUERY_PREFIX}{metric.query.strip()}"
    return METRICS[metric].spelling


PRESSURE_ARGUMENT = "psi=1"


def machine_config(pool: str, annotations: dict[str, str]) -> Body:
    """Turns on the kernel's pressure metrics on the nodes of a pool, which reboots them one after the other."""
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "name": machine_config_name(pool),
            "labels": {"machineconfiguration.openshift.io/role": pool},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {"kernelArguments": [PRESSURE_ARGUMENT]},
    }


def machine_config_name(pool: str) -> str:
    """As the platform's documentation calls it, so that an object made by hand is taken over."""
    return f"99-openshift-machineconfig-{pool}-psi-karg"
