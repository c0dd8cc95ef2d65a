"""A `RebalancePolicy` as the upstream descheduler's own policy, with the meaning that the operator would give it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from renderer.kinds.fields import seconds
from renderer.kinds.rebalance_spec import Query, RebalanceSpec
from renderer.model import Body
from renderer.releases import descheduler
from renderer.releases.descheduler import Release
from renderer.releases.descheduler_operator import COMPACT, DEVIATION, STATIC

SCHEDULABLE = "kubevirt.io/schedulable=true"
"""The nodes that can run virtual machines."""

GROUP = "load-aware"
RECORDS = {
    "CPUUsage": "kubevirt_policy:node_cpu_utilization:ratio",
    "CPUPressure": "kubevirt_policy:node_cpu_pressure:ratio",
    "CPUPressureByUtilization": "kubevirt_policy:node_cpu_pressure_by_utilization:ratio",
    "CPUCombined": "kubevirt_policy:node_cpu_combined:ratio",
    "CPUMemoryCombined": "kubevirt_policy:node_cpu_memory_combined:ratio",
    "MemoryPressure": "kubevirt_policy:node_memory_pressure:ratio",
    "IOPressure": "kubevirt_policy:node_io_pressure:ratio",
}
"""What that group of the catalogue records for each metric: one sample for each node, within 0…1."""

_PODS_BY_REQUEST = ("cpu", "memory", "pods")


@dataclass(frozen=True, slots=True)
class Source:
    """The Prometheus that a descheduler asks; `token` is the namespace and name of a Secret."""

    url: str
    token: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Plugin:
    name: str
    args: dict[str, Any]
    point: str


def policy(spec: RebalanceSpec, release: Release, source: Source | None, protected: tuple[str, ...]) -> Body:
    """The `DeschedulerPolicy`: exactly the fields that the release knows.

    `protected` are the namespaces that are never evicted from.
    """
    top: dict[str, Any] = {}
    if spec.moves_machines:
        top["nodeSelector"] = SCHEDULABLE
    top["maxNoOfPodsToEvictPerNode"] = spec.per_node
    if release.total_limit:
        top["maxNoOfPodsToEvictTotal"] = spec.total
    if source is not None and spec.metric is not None:
        top["metricsProviders"] = [{"source": "Prometheus", "prometheus": _prometheus(source)}]
    return {
        "apiVersion": descheduler.API_VERSION,
        "kind": "DeschedulerPolicy",
        **top,
        "profiles": [
            _profile(name, list(_plugins(name, spec, release, protected)), _evictor(name, spec, release))
            for name in spec.profiles
            if name not in ("EvictPodsWithLocalStorage", "EvictPodsWithPVC")
        ],
    }


def query(metric: str | Query) -> str:
    """What Prometheus is asked for a metric."""
    return metric.query.strip() if isinstance(metric, Query) else RECORDS[metric]


def _prometheus(source: Source) -> dict[str, Any]:
    if source.token is None:
        return {"url": source.url}
    namespace, name = source.token
    return {"url": source.url, "authToken": {"secretReference": {"namespace": namespace, "name": name}}}


def _profile(name: str, plugins: list[_Plugin], evictor: dict[str, Any]) -> dict[str, Any]:
    points: dict[str, Any] = {"filter": {"enabled": ["DefaultEvictor"]}}
    for plugin in plugins:
        points.setdefault(plugin.point, {"enabled": []})["enabled"].append(plugin.name)
    configured = [{"name": plugin.name, "args": plugin.args} for plugin in plugins]
    return {"name": name, "pluginConfig": [*configured, {"name": "DefaultEvictor", "args": evictor}], "plugins": points}


def _plugins(name: str, spec: RebalanceSpec, release: Release, protected: tuple[str, ...]) -> Iterator[_Plugin]:
    """The plugins of a profile, in the operator's order (main pkg/operator/target_config_reconciler.go:805)."""
    scope = {"namespaces": _namespaces(spec, protected)}
    match name:
        case "AffinityAndTaints":
            yield _Plugin("RemovePodsViolatingInterPodAntiAffinity", scope, "deschedule")
            yield _Plugin("RemovePodsViolatingNodeTaints", scope, "deschedule")
            required = {"nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]}
            yield _Plugin("RemovePodsViolatingNodeAffinity", scope | required, "deschedule")
        case "TopologyAndDuplicates" | "SoftTopologyAndDuplicates":
            constraints = ["DoNotSchedule", *(["ScheduleAnyway"] if name.startswith("Soft") else [])]
            spread = scope | {"constraints": constraints}
            yield _Plugin("RemovePodsViolatingTopologySpreadConstraint", spread, "balance")
            yield _Plugin("RemoveDuplicates", scope, "balance")
        case "CompactAndScale":
            thresholds = dict.fromkeys(_PODS_BY_REQUEST, COMPACT[1])
            yield _Plugin("HighNodeUtilization", {"thresholds": thresholds, **_evictable(spec, protected)}, "balance")
        case _:
            yield from _lifecycle(name, spec, scope)
            yield _Plugin("LowNodeUtilization", _load(name, spec, release) | _evictable(spec, protected), "balance")


def _lifecycle(name: str, spec: RebalanceSpec, scope: dict[str, Any]) -> Iterator[_Plugin]:
    if name == "LifecycleAndUtilization":
        lifetime = {"maxPodLifeTimeSeconds": seconds(spec.pod_lifetime or "24h")}
        yield _Plugin("PodLifeTime", scope | lifetime, "deschedule")
    if name in ("LifecycleAndUtilization", "LongLifecycle"):
        restarts = {"podRestartThreshold": 100, "includingInitContainers": True}
        yield _Plugin("RemovePodsHavingTooManyRestarts", scope | restarts, "deschedule")


def _load(name: str, spec: RebalanceSpec, release: Release) -> dict[str, Any]:
    """The arguments of LowNodeUtilization but for namespaces."""
    deviation = spec.deviation if name == "KubeVirtRelieveAndMigrate" else None
    low, high = DEVIATION[deviation] if deviation else STATIC[spec.static or "Medium"]
    resources = _PODS_BY_REQUEST if spec.metric is None else ("MetricResource",)
    args: dict[str, Any] = {
        "thresholds": dict.fromkeys(resources, low),
        "targetThresholds": dict.fromkeys(resources, high),
    }
    if deviation:
        args["useDeviationThresholds"] = True
    if spec.metric is not None:
        args["metricsUtilization"] = {"source": "Prometheus", "prometheus": {"query": query(spec.metric)}}
    if release.prometheus:
        args["evictionLimits"] = {"node": spec.per_node}
    return args


def _namespaces(spec: RebalanceSpec, protected: tuple[str, ...]) -> dict[str, Any]:
    if spec.namespaces.included:
        return {"include": list(spec.namespaces.included)}
    return {"exclude": list(dict.fromkeys([*protected, *(spec.namespaces.excluded or [])]))}


def _evictable(spec: RebalanceSpec, protected: tuple[str, ...]) -> dict[str, Any]:
    """The two utilization plugins know exclusion only (v0.36.0 nodeutilization/validation.go:59)."""
    return {"evictableNamespaces": {"exclude": list(dict.fromkeys([*protected, *(spec.namespaces.excluded or [])]))}}


def _evictor(name: str, spec: RebalanceSpec, release: Release) -> dict[str, Any]:
    """Which pods may go.  Those of virtual machines have local storage: their profile lifts that protection."""
    moves_machines = name == "KubeVirtRelieveAndMigrate"
    local = moves_machines or "EvictPodsWithLocalStorage" in spec.profiles
    claims = moves_machines or "EvictPodsWithPVC" in spec.profiles
    args = _protections(local=local, claims=claims) if release.protections else _booleans(local=local, claims=claims)
    if release.protections and moves_machines:
        args["noEvictionPolicy"] = "Mandatory"
    priority = spec.priority_threshold
    if priority is not None:
        wanted = {"name": priority.class_name, "value": priority.value}
        args["priorityThreshold"] = {key: value for key, value in wanted.items() if value is not None}
    return args


def _booleans(*, local: bool, claims: bool) -> dict[str, Any]:
    """Up to 0.33; from 0.34 they must not stand beside `podProtections` (v0.36.0 defaultevictor/validation.go:48)."""
    return {**({"evictLocalStoragePods": True} if local else {}), **({} if claims else {"ignorePvcPods": True})}


def _protections(*, local: bool, claims: bool) -> dict[str, Any]:
    protections: dict[str, Any] = {}
    if local:
        protections["defaultDisabled"] = ["PodsWithLocalStorage"]
    if not claims:
        protections["extraEnabled"] = ["PodsWithPVC"]
    return {"podProtections": protections} if protections else {}
