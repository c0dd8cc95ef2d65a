"""`rebalancing`: its records, and each alert firing and silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from renderer import catalog
from renderer.catalog.rebalancing import OVERUTILIZED
from tests.rules.fleet import FLEETS, Convention, Node, series
from tests.rules.promtool import INTERVAL, STEPS, case, nothing, rule_file, run, samples

CONVENTIONS: list[Convention] = ["name", "address"]


def inputs(nodes: Sequence[Node], convention: Convention, **more: str) -> dict[str, str]:
    return {one.labels: one.values(INTERVAL, STEPS) for one in series(nodes, convention)} | more


def told(name: str, time: str, labels: Mapping[str, str] | None = None, **values: str) -> dict[str, Any]:
    """An alert that fires at that time with these labels, or without labels is silent."""
    if labels is None:
        return {"eval_time": time, "alertname": name, "exp_alerts": []}
    group = catalog.groups(["rebalancing"], catalog.Source())["rebalancing"]
    rule = next(rule for rule in group.rules if rule.alert == name)
    words = dict(rule.annotations)
    for key, value in {**{f"$labels.{label}": text for label, text in labels.items()}, **values}.items():
        words = {word: text.replace(f"{{{{ {key} }}}}", value) for word, text in words.items()}
    fired = {"exp_labels": {"severity": "warning", **labels}, "exp_annotations": words}
    return {"eval_time": time, "alertname": name, "exp_alerts": [fired]}


def taint(node: str, values: str) -> dict[str, str]:
    return {
        f'kube_node_spec_taint{{node="{node}",key="{OVERUTILIZED}",effect="PreferNoSchedule",value="true"}}': values
    }


def evicted(values: str, name: str = "descheduler_pods_evicted_total") -> dict[str, str]:
    return {f'{name}{{strategy="LowNodeUtilization",result="success",node="a",namespace="vms"}}': values}


def test_records(tmp_path: Path, promtool: Path) -> None:
    given = inputs([Node("a", 0.9, 0.4), Node("b", 0.3, 0.4)], "name") | taint("a", "1+0x240") | evicted("0+1x240")
    given |= {
        "kubevirt_vmi_migrations_in_pending_phase": "3+0x240",
        "kubevirt_vmi_migrations_in_running_phase": "2+0x240",
    }
    found = [
        samples("kubevirt_policy:node_overutilized_taint:bool", {"a": 1, "b": 0}, time="90m"),
        samples("kubevirt_policy:node_taint_flips:changes1h", {"a": 0, "b": 0}, time="90m"),
        samples("kubevirt_policy:evictions:increase1h", {"success": 120}, "result", time="90m"),
        samples("kubevirt_policy:migrations_in_flight:count", {"pending": 3, "running": 2}, "phase", time="90m"),
        samples("kubevirt_policy:node_load_spread:ratio", {"cpu": 0.3, "memory": 0}, "dimension", time="90m"),
        {
            "expr": "kubevirt_policy:nodes_tainted:ratio",
            "eval_time": "90m",
            "exp_samples": [{"labels": "kubevirt_policy:nodes_tainted:ratio", "value": 0.5}],
        },
    ]
    old = inputs([Node("a")], "name") | evicted("0+1x240", "descheduler_pods_evicted")
    before = [samples("kubevirt_policy:evictions:increase1h", {"success": 120}, "result", time="90m")]
    assert run(promtool, rule_file(tmp_path, "name"), [case(given, found), case(old, before)]) == ""


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_pressure_missing(convention: Convention, tmp_path: Path, promtool: Path) -> None:
    name = "KubeVirtPolicyPressureMetricsMissing"
    some = [told(name, "10m"), told(name, "30m", {"instance": "b"})]
    tests = [
        case(inputs(FLEETS["pressure on some"], convention), alerts=some),
        case(inputs(FLEETS["one busy node"], convention), alerts=[told(name, "30m")]),
    ]
    assert run(promtool, rule_file(tmp_path, convention), tests) == ""


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_node_missing(convention: Convention, tmp_path: Path, promtool: Path) -> None:
    name = "KubeVirtPolicyNodeMetricsMissing"
    missing = [told(name, "5m"), told(name, "30m", {"instance": "b"})]
    unready = inputs(FLEETS["nothing from one"], convention)
    unready['kube_node_status_condition{node="b",condition="Ready",status="true"}'] = "0+0x240"
    tests = [
        case(inputs(FLEETS["nothing from one"], convention), alerts=missing),
        case(inputs(FLEETS["kubelet only on one"], convention), alerts=[told(name, "30m")]),
        case(unready, alerts=[told(name, "30m")]),
    ]
    assert run(promtool, rule_file(tmp_path, convention), tests) == ""


def test_not_converging(tmp_path: Path, promtool: Path) -> None:
    """Evictions and a node that stays far above the average; not without either of them."""
    name = "KubeVirtPolicyRebalancingNotConverging"
    apart, close = [Node("a", 0.9), Node("b", 0.3)], [Node("a", 0.6), Node("b", 0.4)]
    value = {"$value | humanizePercentage": "30%"}
    fires = [told(name, "5m"), told(name, "115m", {"dimension": "cpu"}, **value)]
    tests = [
        case(inputs(apart, "name") | evicted("0+1x240"), alerts=fires),
        case(inputs(apart, "name"), alerts=[told(name, "115m")]),
        case(inputs(apart, "name") | evicted("7+0x240"), alerts=[told(name, "115m")]),
        case(inputs(close, "name") | evicted("0+1x240"), alerts=[told(name, "115m")]),
    ]
    assert run(promtool, rule_file(tmp_path, "name"), tests) == ""


def test_flapping(tmp_path: Path, promtool: Path) -> None:
    """On for five minutes and off for five, again and again; not once in a while."""
    name = "KubeVirtPolicyTaintsFlapping"
    nodes = [Node("a"), Node("b")]
    wild = " ".join(["1+0x9 stale _x9"] * 12)
    calm = " ".join(["1+0x79 stale _x79"] * 2)
    fires = [told(name, "20m"), told(name, "100m", {"instance": "a"}, **{"$value": "12"})]
    tests = [
        case(inputs(nodes, "name") | taint("a", wild), alerts=fires),
        case(inputs(nodes, "name") | taint("a", calm), alerts=[told(name, "100m")]),
        case(inputs(nodes, "name") | taint("a", "1+0x240"), alerts=[told(name, "100m")]),
    ]
    assert run(promtool, rule_file(tmp_path, "name"), tests) == ""


def test_nothing_to_say(tmp_path: Path, promtool: Path) -> None:
    """Without any series there is no record and no alert."""
    rules = [rule for group in catalog.groups(["rebalancing"], catalog.Source()).values() for rule in group.rules]
    records = [nothing(rule.record, "60m") for rule in rules if rule.record]
    silent = [told(rule.alert, "60m") for rule in rules if rule.alert]
    assert run(promtool, rule_file(tmp_path, "name"), [case({"up": "1+0x240"}, records, silent)]) == ""
