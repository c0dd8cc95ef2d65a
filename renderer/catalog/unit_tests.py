"""Unit tests for promtool that come with the catalogue's rules, for the series as a cluster has them.

Numbers are worked out by hand; `kubevirt-policy test` runs them on what is rendered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from renderer import catalog
from renderer.catalog.model import Group, Source
from renderer.softtaint.config import NAME as TAINTER
from renderer.softtaint.taints import EFFECT, TAINTS, VALUE

Test = dict[str, Any]
Series = dict[str, str]

_LENGTH = 4 * 3600
_BYTES = 1000
_FARTHEST = 120
"""Seconds between two samples."""


@dataclass(frozen=True, slots=True)
class _Node:
    """Shares of CPU and memory in use, and of time stalled on CPU, memory and input or output."""

    name: str
    address: str
    cpu: float
    memory: float = 0.5
    stalled: tuple[float, float, float] | None = None


NODES = (
    _Node("busy", "10.0.0.1", 0.75, stalled=(0.2, 0.1, 0.05)),
    _Node("calm", "10.0.0.2", 0.45, stalled=(0.02, 0.0, 0.0)),
    _Node("kubelet", "10.0.0.3", 0.6),
)
"""The last has no node-exporter."""
_APART = (_Node("busy", "10.0.0.1", 0.9, stalled=(0.0, 0.0, 0.0)), _Node("calm", "10.0.0.2", 0.3, stalled=(0, 0, 0)))
_RATIOS: Mapping[str, Sequence[float | None]] = {
    "cpu_utilization": (0.75, 0.45, 0.6),
    "memory_utilization": (0.5, 0.5, 0.5),
    "cpu_pressure_stall": (0.2, 0.02, None),
    "memory_pressure_stall": (0.1, 0, None),
    "io_pressure_stall": (0.05, 0, None),
    "cpu_pressure_counted": (0.2, 0, None),
    "memory_pressure_counted": (0, 0, None),
    "cpu_pressure": (0.2, 0.02, 0.6),
    "memory_pressure": (0.1, 0, 0.5),
    "io_pressure": (0.05, 0, 0.6),
    "cpu_pressure_by_utilization": (0.2, 0, 0),
    "cpu_combined": (0.75, 0.45, 0.6),
    "cpu_memory_combined": (round(3 * math.sqrt(0.15**2 + 0.1**2), 6), 0, 0),
}
_AVERAGES = {"cpu_utilization": 0.6, "memory_utilization": 0.5, "cpu_pressure": 0.1, "memory_pressure": 0.0}


def unit_tests(names: Sequence[str], source: Source) -> Test:
    """A file of unit tests for these groups of a cluster, without its `rule_files`.

    Where scrapes are so far apart that series come and go in between, the tests have more samples than the cluster:
    they look at what the rules make of figures, and `rules/scrape-interval` tells of the gaps.
    """
    source = replace(source, scrape_interval=min(source.scrape_interval, _FARTHEST))
    tests = [test for name in names for test in _TESTS[name](source)]
    return {"evaluation_interval": "1m", "tests": tests}


def _load_aware(source: Source) -> Iterator[Test]:
    ready = [*NODES, _Node("dark", "10.0.0.9", 0)]
    series = _nodes(NODES, source) | {
        f'kube_node_status_condition{{node="{node.name}",condition="Ready",status="true"}}': _still(1, source)
        for node in ready
    }
    names = [node.name for node in NODES]
    found = [
        _samples(f"kubevirt_policy:node_{name}:ratio", "instance", dict(zip(names, values, strict=True)))
        for name, values in _RATIOS.items()
    ]
    found += [_single(f"kubevirt_policy:workers_{name}:avg", value) for name, value in _AVERAGES.items()]
    if source.node_names == "address":
        found.append(_samples("count by (node) (kubevirt_policy:node_address:info)", "node", dict.fromkeys(names, 2)))
    alerts = [
        *_alert("KubeVirtPolicyPressureMetricsMissing", "5m", "30m", {"instance": "kubelet"}),
        *_alert("KubeVirtPolicyNodeMetricsMissing", "5m", "30m", {"instance": "dark"}),
    ]
    yield _test("load-aware", source, series, found, alerts)


def _rate_limits(source: Source) -> Iterator[Test]:
    series = _client("virt-controller-5c7d-abcde", 0.2, 10, source) | _client("virt-handler-x1", 0.05, 4, source)
    priority = 'priority_level="workload-low"'
    change = 'apiserver_request_duration_seconds_bucket{verb="PUT",subresource="",le='
    series |= {
        f"apiserver_flowcontrol_rejected_requests_total{{{priority}}}": _growing(3, source),
        f'apiserver_flowcontrol_current_executing_seats{{instance="x",{priority}}}': _still(100, source),
        f'apiserver_flowcontrol_nominal_limit_seats{{instance="x",{priority}}}': _still(200, source),
        f'{change}"0.1"}}': _growing(10, source),
        f'{change}"+Inf"}}': _growing(10, source),
    }
    throttled = {"virt-controller": 0.2, "virt-handler": 0.05}
    found = [
        _samples("kubevirt_policy:client_throttling:seconds", "component", throttled),
        _samples("kubevirt_policy:client_throttling_worst_pod:seconds", "component", throttled),
        _samples("kubevirt_policy:client_requests:rate", "component", {"virt-controller": 10, "virt-handler": 4}),
        _single("kubevirt_policy:apiserver_rejected_requests:rate", 3),
        _single("kubevirt_policy:apiserver_workload_seats:ratio", 0.5),
        _single("kubevirt_policy:apiserver_mutating_latency:p99", 0.099),
    ]
    told = {"component": "virt-controller"}
    value = {"$value | humanizeDuration": "200ms"}
    yield _test(
        "rate-limits", source, series, found, _alert("KubeVirtPolicyClientsThrottled", "10m", "30m", told, value)
    )


def _rebalancing(source: Source) -> Iterator[Test]:
    series = _nodes(NODES, source) | _taint("busy", TAINTS, _still(1, source)) | _evicted(source)
    series |= _taint("kubelet", TAINTS[1:], _still(1, source)) | {
        "kubevirt_vmi_migrations_in_running_phase": _still(2, source),
        "kubevirt_policy_softtaint_last_good_pass_timestamp_seconds": _growing(1, source),
    }
    found = [
        _samples("kubevirt_policy:evictions:increase1h", "result", {"success": 60}),
        _samples("kubevirt_policy:migrations_in_flight:count", "phase", {"running": 2}),
        _samples("kubevirt_policy:node_overutilized_taint:bool", "instance", {"busy": 1, "calm": 0, "kubelet": 0}),
        _samples("kubevirt_policy:node_load_taints:count", "instance", {"busy": 2, "calm": 0, "kubelet": 1}),
        _single("kubevirt_policy:nodes_tainted:ratio", round(1 / 3, 6)),
        _samples("kubevirt_policy:node_taint_flips:changes1h", "instance", {"busy": 0, "calm": 0, "kubelet": 0}),
        _samples("kubevirt_policy:node_load_spread:ratio", "dimension", {"cpu": 0.15, "memory": 0}),
        _single("kubevirt_policy:softtaint_last_good_pass:age_seconds < bool 300", 1),
    ]
    yield _test("rebalancing", source, series, found, [])
    apart = {"dimension": "cpu"}, {"$value | humanizePercentage": "30%"}
    yield _test(
        "rebalancing that does not converge",
        source,
        _nodes(_APART, source) | _evicted(source),
        [],
        _alert("KubeVirtPolicyRebalancingNotConverging", "5m", "205m", *apart),
    )
    on = max(1, 360 // source.scrape_interval)  # six minutes, of which no window begins or ends at one
    flapping = " ".join([f"1+0x{on - 1} stale _x{on - 1}"] * 10)
    failing = {f'kube_cronjob_created{{namespace="{TAINTER}",cronjob="{TAINTER}"}}': _still(0, source)}
    yield _test(
        "taints that come and go, and a soft-tainter that never succeeds",
        source,
        _nodes(NODES, source) | _taint("calm", TAINTS[1:], flapping) | failing,
        [],
        [
            *_alert("KubeVirtPolicyTaintsFlapping", "10m", "100m", {"instance": "calm"}, {"$value": "10"}),
            *_alert("KubeVirtPolicySoftTainterFailing", "25m", "35m", {}),
        ],
    )


_TESTS: Mapping[str, Callable[[Source], Iterator[Test]]] = {
    "load-aware": _load_aware,
    "rate-limits": _rate_limits,
    "rebalancing": _rebalancing,
}


def _nodes(nodes: Sequence[_Node], source: Source) -> Series:
    """What exporters and kube-state-metrics say; of a node without pressure metrics the kubelet alone."""
    found: Series = {}
    for node in nodes:
        found |= _exporter(node, source) if node.stalled else _kubelet(node, source)
        found[f'kube_node_info{{node="{node.name}",internal_ip="{node.address}"}}'] = _still(1, source)
    return found


def _exporter(node: _Node, source: Source) -> Series:
    labels = f'instance="{node.name if source.node_names == "name" else f"{node.address}:9100"}"'
    stalled = zip(("cpu", "memory", "io"), node.stalled or (), strict=False)
    return {
        f'node_cpu_seconds_total{{{labels},cpu="0",mode="idle"}}': _growing(1 - node.cpu, source),
        f"node_memory_MemTotal_bytes{{{labels}}}": _still(_BYTES, source),
        f"node_memory_MemAvailable_bytes{{{labels}}}": _still(round(_BYTES * (1 - node.memory)), source),
        **{
            f"node_pressure_{name}_waiting_seconds_total{{{labels}}}": _growing(share, source)
            for name, share in stalled
        },
    }


def _kubelet(node: _Node, source: Source) -> Series:
    labels = f'node="{node.name}"'
    return {
        f'container_cpu_usage_seconds_total{{{labels},id="/"}}': _growing(4 * node.cpu, source),
        f"machine_cpu_cores{{{labels}}}": _still(4, source),
        f'container_memory_working_set_bytes{{{labels},id="/"}}': _still(round(_BYTES * node.memory), source),
        f"machine_memory_bytes{{{labels}}}": _still(_BYTES, source),
    }


def _client(pod: str, waited: float, calls: float, source: Source) -> Series:
    limiter = f'kubevirt_rest_client_rate_limiter_duration_seconds_%s{{pod="{pod}"}}'
    return {
        limiter % "sum": _growing(waited * calls, source),
        limiter % "count": _growing(calls, source),
        f'kubevirt_rest_client_requests_total{{pod="{pod}"}}': _growing(calls, source),
    }


def _taint(node: str, keys: Sequence[str], values: str) -> Series:
    rest = f'value="{VALUE}",effect="{EFFECT}"'
    return {f'kube_node_spec_taint{{node="{node}",key="{key}",{rest}}}': values for key in keys}


def _evicted(source: Source) -> Series:
    """One a minute."""
    return {'descheduler_pods_evicted_total{result="success",node="busy"}': _growing(1 / 60, source)}


def _growing(rate: float, source: Source) -> str:
    return f"0+{rate * source.scrape_interval:.12g}x{_LENGTH // source.scrape_interval}"


def _still(value: float, source: Source) -> str:
    return f"{value:.12g}+0x{_LENGTH // source.scrape_interval}"


def _samples(record: str, label: str, values: Mapping[str, float | None]) -> Test:
    """Exactly these samples, each with that label alone, to a millionth."""
    wanted = [
        {"labels": f'{{{label}="{name}"}}', "value": value} for name, value in values.items() if value is not None
    ]
    return {"expr": f"round({record} * 1e6) / 1e6", "eval_time": "90m", "exp_samples": wanted}


def _single(expr: str, value: float) -> Test:
    return {
        "expr": f"round(({expr}) * 1e6) / 1e6",
        "eval_time": "90m",
        "exp_samples": [{"labels": "{}", "value": value}],
    }


def _alert(
    name: str, silent: str, fires: str, labels: Mapping[str, str], values: Mapping[str, str] | None = None
) -> list[Test]:
    """An alert that is silent at the first time, and fires at the second with these labels and nothing else."""
    [rule] = [rule for group in _groups() for rule in group.rules if rule.alert == name]
    words = dict(rule.annotations)
    for key, text in {**{f"$labels.{label}": value for label, value in labels.items()}, **(values or {})}.items():
        words = {word: found.replace(f"{{{{ {key} }}}}", text) for word, found in words.items()}
    fired = {"exp_labels": {**rule.labels, **labels}, "exp_annotations": words}
    return [
        {"eval_time": silent, "alertname": name, "exp_alerts": []},
        {"eval_time": fires, "alertname": name, "exp_alerts": [fired]},
    ]


def _groups() -> Iterator[Group]:
    yield from catalog.groups(catalog.CATALOG, Source()).values()


def _test(name: str, source: Source, series: Series, found: Sequence[Test], alerts: Sequence[Test]) -> Test:
    return {
        "name": f"catalogue: {name}",
        "interval": f"{source.scrape_interval}s",
        "input_series": [{"series": one, "values": values} for one, values in series.items()],
        "promql_expr_test": list(found),
        "alert_rule_test": list(alerts),
    }
