"""`load-aware`: one sample for each node, within 0…1, whatever the exporters say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.rules.fleet import FLEETS, PREFIX, Convention, Node, expected
from tests.rules.promtool import case, inputs, nothing, rule_file, run, samples, told

RECORDS = list(expected([Node("a")]))
CONVENTIONS: list[Convention] = ["name", "address"]


def sound(names: Sequence[str], time: str = "10m") -> list[dict[str, Any]]:
    """For every record: these nodes, each once, nothing outside 0…1, no NaN."""
    once = [
        {
            "expr": f"count by (instance) ({record})",
            "eval_time": time,
            "exp_samples": [{"labels": f'{{instance="{name}"}}', "value": 1} for name in names],
        }
        for record in RECORDS
    ]
    return [*once, *(nothing(f"{record} < 0 or {record} > 1 or {record} != {record}", time) for record in RECORDS)]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_fleets(convention: Convention, tmp_path: Path, promtool: Path) -> None:
    """Every fleet under both conventions, record by record, against the computation in Python."""
    tests = [
        case(
            inputs(nodes, convention),
            [
                *(samples(record, values) for record, values in expected(nodes).items()),
                *sound([node.name for node in nodes if node.exporters or node.kubelet]),
            ],
        )
        for nodes in FLEETS.values()
    ]
    assert run(promtool, rule_file(tmp_path, convention), tests) == ""


def test_numbers_by_hand(tmp_path: Path, promtool: Path) -> None:
    """The combined score without the help of any code: 3 × √(0.3² + 0.2²) and 3 × √(0.1² + 0.2²)."""
    nodes = [
        Node("a", 0.6, 0.2, (0.9, 0.9, 0.0)),
        Node("b", 0.3, 0.6, (0.0, 0.0, 0.0)),
        Node("c", 0.3, 0.4, (0.0, 0.0, 0.0)),
    ]
    hand = {"a": 0.6, "b": 0.6, "c": 0.0}  # CPU 0.4 and memory 0.4 on average; pressure of idle nodes does not count
    found = [
        samples(f"{PREFIX}cpu_memory_combined:ratio", hand),
        samples(f"{PREFIX}cpu_pressure:ratio", {"a": 0.9, "b": 0, "c": 0}),
        samples(f"{PREFIX}cpu_pressure_by_utilization:ratio", {"a": 0, "b": 0, "c": 0}),
    ]
    assert run(promtool, rule_file(tmp_path, "name"), [case(inputs(nodes, "name"), found)]) == ""


BUSY = 'instance="a",job="exporter"'
KUBE = {'kube_node_info{node="a",internal_ip="10.0.0.1"}': "1+0x240"}
MEMORY = {f"node_memory_MemTotal_bytes{{{BUSY}}}": "100+0x240", f"node_memory_MemAvailable_bytes{{{BUSY}}}": "50+0x240"}
SECOND = {f'node_cpu_seconds_total{{{BUSY},cpu="1",mode="idle"}}': "0+15x240"}


def cpu(values: str, **more: str) -> dict[str, str]:
    return {f'node_cpu_seconds_total{{{BUSY},cpu="0",mode="idle"}}': values, **MEMORY, **KUBE, **more}


TROUBLES: Mapping[str, tuple[dict[str, str], Sequence[str]]] = {
    "a restart in the window": (cpu("90000+15x19 0+15x200"), ["9m30s", "10m", "10m30s", "11m", "12m"]),
    "a restart into a busy node": (cpu("90000+15x19 0+0x200"), ["9m30s", "10m", "10m30s", "11m", "12m"]),
    "a counter that goes back a little": (cpu("90000+15x19 90284+15x200") | SECOND, ["9m30s", "10m", "11m", "12m"]),
    "a missed scrape": (cpu("0+15x18 _ 300+15x200"), ["9m", "9m30s", "10m", "10m30s"]),
    "two missed scrapes": (cpu("0+15x17 _ _ 300+15x200"), ["9m", "9m30s", "10m", "10m30s"]),
    "memory that is no number": (
        cpu("0+15x240") | {f"node_memory_MemAvailable_bytes{{{BUSY}}}": "50+0x18 NaN 50+0x220"},
        ["11m30s", "12m"],
    ),
}


def test_troubles(tmp_path: Path, promtool: Path) -> None:
    """Restarts, resets, missed scrapes and NaN: one sample of the node at every time, within 0…1."""
    tests = [
        case(series, [test for time in times for test in sound(["a"], time)]) for series, times in TROUBLES.values()
    ]
    assert run(promtool, rule_file(tmp_path, "name"), tests) == ""


def test_a_counter_that_goes_back_is_not_an_idle_node(tmp_path: Path, promtool: Path) -> None:
    """The processor whose counter is broken is left out; the others tell how busy the node is."""
    found = [samples(f"{PREFIX}cpu_utilization:ratio", {"a": 0.5}, time=time) for time in ("9m30s", "10m", "12m")]
    given = cpu("90000+15x19 90284+15x200") | SECOND
    assert run(promtool, rule_file(tmp_path, "name"), [case(given, found)]) == ""


def test_no_memory_and_no_number(tmp_path: Path, promtool: Path) -> None:
    """A total of 0, or memory that is not reported: no sample of memory, and still one of the combined score."""
    given = [
        cpu("0+15x240") | {f"node_memory_MemTotal_bytes{{{BUSY}}}": "0+0x240"},
        {key: value for key, value in cpu("0+15x240").items() if not key.startswith("node_memory")},
    ]
    found = [
        nothing(f"{PREFIX}memory_utilization:ratio"),
        samples(f"{PREFIX}cpu_memory_combined:ratio", {"a": 0}),
        samples(f"{PREFIX}cpu_combined:ratio", {"a": 0.5}),
    ]
    assert run(promtool, rule_file(tmp_path, "name"), [case(one, found) for one in given]) == ""


AMBIGUOUS = {
    'node_cpu_seconds_total{instance="10.0.0.1:9100",job="x",cpu="0",mode="idle"}': "0+15x240",
    'node_cpu_seconds_total{instance="b:9100",job="x",cpu="0",mode="idle"}': "0+6x240",
    'node_cpu_seconds_total{instance="10.9.9.9:9100",job="x",cpu="0",mode="idle"}': "0+0x240",
    'kube_node_info{node="a",internal_ip="10.0.0.1",instance="one"}': "1+0x240",
    'kube_node_info{node="a",internal_ip="10.0.0.1",instance="two"}': "1+0x240",
    'kube_node_info{node="b",internal_ip="10.0.0.2",instance="one"}': "1+0x240",
    'kube_node_role{node="a",role="master",instance="one"}': "1+0x240",
    'kube_node_role{node="a",role="master",instance="two"}': "1+0x240",
}


def test_addresses(tmp_path: Path, promtool: Path) -> None:
    """Two kube-state-metrics, an exporter by host name, and one on a machine that is no node."""
    found = [samples(f"{PREFIX}cpu_utilization:ratio", {"a": 0.5, "b": 0.8})]
    moved = {**AMBIGUOUS, 'kube_node_info{node="old",internal_ip="10.0.0.1",instance="one"}': "1+0x240"}
    one_of = [{"expr": f"count({PREFIX}cpu_utilization:ratio)", "eval_time": "10m", "exp_samples": [{"value": 2}]}]
    tests = [case(AMBIGUOUS, found), case(moved, one_of)]
    assert run(promtool, rule_file(tmp_path, "address"), tests) == ""


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_node_without_pressure_metrics_has_a_sample_and_an_alert(
    convention: Convention, tmp_path: Path, promtool: Path
) -> None:
    name = "KubeVirtPolicyPressureMetricsMissing"
    some = [told(name, "10m"), told(name, "30m", {"instance": "b"})]
    tests = [
        case(inputs(FLEETS["pressure on some"], convention), alerts=some),
        case(inputs(FLEETS["one busy node"], convention), alerts=[told(name, "30m")]),
    ]
    assert run(promtool, rule_file(tmp_path, convention), tests) == ""


def _is_cpu(series: str) -> bool:
    return series.startswith("node_cpu_seconds_total")


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_node_without_any_source_has_no_sample_and_an_alert(
    convention: Convention, tmp_path: Path, promtool: Path
) -> None:
    """Without any source on a node there is no sample of it, and an alert; one source is enough."""
    name = "KubeVirtPolicyNodeMetricsMissing"
    missing = [told(name, "5m"), told(name, "30m", {"instance": "b"})]
    unready = inputs(FLEETS["nothing from one"], convention)
    unready['kube_node_status_condition{node="b",condition="Ready",status="true"}'] = "0+0x240"
    gone = [nothing(f'{record}{{instance="b"}}', "30m") for record in RECORDS]
    only_processors = inputs(FLEETS["nothing from one"], convention)
    only_processors |= {name: values for name, values in inputs(FLEETS["even"], convention).items() if _is_cpu(name)}
    tests = [
        case(inputs(FLEETS["nothing from one"], convention), gone, missing),
        case(only_processors, alerts=missing),
        case(inputs(FLEETS["kubelet only on one"], convention), alerts=[told(name, "30m")]),
        case(unready, alerts=[told(name, "30m")]),
    ]
    assert run(promtool, rule_file(tmp_path, convention), tests) == ""
