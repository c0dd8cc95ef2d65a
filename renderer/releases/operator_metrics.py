"""How the Kube Descheduler Operator spells what load is measured by, and what it asks Prometheus for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """A utilization profile: the operator's word for it, its first schema, and what it asks Prometheus.

    `needs_pressure`: without pressure metrics there are no samples at all.
    """

    spelling: str
    since: int
    query: str
    needs_pressure: bool = True


_WAITING = "node_pressure_cpu_waiting_seconds_total"

METRICS: dict[str, Metric] = {
    "CPUUsage": Metric("PrometheusCPUUsage", 18, "instance:node_cpu:rate:sum", needs_pressure=False),
    "CPUPressure": Metric("PrometheusCPUPSIPressure", 18, f"rate({_WAITING}[1m])"),
    "CPUPressureByUtilization": Metric("PrometheusCPUPSIPressureByUtilization", 18, f"rate({_WAITING}[1m])"),
    "CPUCombined": Metric("PrometheusCPUCombined", 18, "descheduler:combined_utilization_and_pressure:avg1m"),
    # The only one whose literal ends in "Profile" (release-4.21 pkg/apis/descheduler/v1/types_descheduler.go:212).
    "CPUMemoryCombined": Metric(
        "PrometheusCPUMemoryCombinedProfile",
        21,
        "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m",
    ),
    "MemoryPressure": Metric("PrometheusMemoryPSIPressure", 18, "rate(node_pressure_memory_waiting_seconds_total[1m])"),
    "IOPressure": Metric("PrometheusIOPSIPressure", 18, "rate(node_pressure_io_waiting_seconds_total[1m])"),
}
"""Checked by the operator alone: the CRD takes any text (main target_config_reconciler.go:962)."""

QUERY_PREFIX = "query:"
"""Any PromQL follows it (release-4.18 target_config_reconciler.go:807, main :980)."""

AVERAGES = "descheduler:averageworkers"
"""What the names of records begin with that are one figure for all workers (`descheduler-rules` of release-4.22)."""

PREFIX = "descheduler:"
"""What the operator's records begin with (its PrometheusRule `descheduler-rules`)."""

_FIRST = (
    "nodeutilization:cpu",
    "averageworkersutilization:cpu",
    "nodepressure:cpu",
    "combined_utilization_and_pressure",
)
_LATER = (
    "nodeutilization:memory",
    "averageworkersutilization:memory",
    "averageworkerspressure:cpu",
    "nodepressure:memory",
    "averageworkerspressure:memory",
)
_DEVIATING = ("nodeutilization:cpu", "nodeutilization:memory", "nodepressure:cpu", "nodepressure:memory")
_DISTANCES = ("ideal_point_positive_distance", "linear_amplified_ideal_point_positive_distance:k3")

RECORDS: dict[str, int] = {
    **{f"{PREFIX}{name}:avg1m": 18 for name in _FIRST},
    **{f"{PREFIX}{name}:avg1m": 21 for name in _LATER},
    **{f"{PREFIX}{name}:avg1m:positivedeviation": 21 for name in _DEVIATING},
    **{f"{PREFIX}node:{name}:avg1m": 21 for name in _DISTANCES},
    **{f"{PREFIX}{name}:p66_5m:positivedeviation": 23 for name in _DEVIATING},
    **{f"{PREFIX}node:{name}:p66_5m": 23 for name in (*_DISTANCES, "actuation_priority")},
    **{f"{PREFIX}node:{name}:10m": 23 for name in ("eviction_count", "cooldown_multiplier")},
}
"""The first schema that makes each record (bindata/assets/kube-descheduler/prometheusrule.yaml of release-4.18:35,
release-4.21:109, main:188)."""

PRESSURE = "node_pressure_"
"""What the names of node-exporter's series begin with that tell the kernel's pressure metrics."""

BY_PRESSURE = frozenset(
    name for name in RECORDS if any(word in name for word in ("pressure", "ideal_point", "actuation_priority"))
)
"""Those of the operator's records that are made of them: without, they have no samples."""
