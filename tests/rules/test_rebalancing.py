"""`rebalancing`: its records, and each alert firing and silent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from renderer import catalog
from renderer.softtaint.config import NAME as TAINTER
from renderer.softtaint.taints import APPROPRIATE, OVERUTILIZED
from tests.rules.fleet import Node
from tests.rules.promtool import case, inputs, nothing, rule_file, run, samples, told


def taint(node: str, values: str, key: str = OVERUTILIZED, rest: str = "") -> dict[str, str]:
    rest = rest or 'effect="PreferNoSchedule",value="true"'
    return {f'kube_node_spec_taint{{node="{node}",key="{key}",{rest}}}': values}


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
        samples("kubevirt_policy:node_load_taints:count", {"a": 1, "b": 0}, time="90m"),
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


def test_taints_that_count(tmp_path: Path, promtool: Path) -> None:
    """Two keys, with the value and effect that the tainters write; each once, whoever else tells of it."""
    twice = "1+0x240"
    given = inputs([Node(name) for name in "abcdef"], "name")
    given |= taint("a", twice) | taint("a", twice, APPROPRIATE)
    given |= taint("a", twice, rest='effect="PreferNoSchedule",value="true",instance="second"')
    given |= taint("b", twice, APPROPRIATE)
    given |= taint("c", twice, "example.com/overutilized") | taint("c", twice, f"{OVERUTILIZED}-not")
    given |= taint("d", twice, rest='effect="NoSchedule",value="true"')
    given |= taint("e", twice, rest='effect="PreferNoSchedule",value="by-hand"')
    given |= {f'kube_node_info{{node="{name}",internal_ip="10.9.9.9",instance="second"}}': twice for name in "af"}
    found = [
        samples("kubevirt_policy:node_overutilized_taint:bool", dict.fromkeys("bcdef", 0) | {"a": 1}),
        samples("kubevirt_policy:node_load_taints:count", dict.fromkeys("cdef", 0) | {"a": 2, "b": 1}),
        {
            "expr": "round(kubevirt_policy:nodes_tainted:ratio * 6)",
            "eval_time": "10m",
            "exp_samples": [{"labels": "{}", "value": 1}],
        },
    ]
    assert run(promtool, rule_file(tmp_path, "name"), [case(given, found)]) == ""


def test_changes_of_either_taint_count(tmp_path: Path, promtool: Path) -> None:
    """Both at once is one change: the soft-tainter writes them together."""
    given = inputs([Node("a"), Node("b"), Node("c")], "name")
    given |= taint("a", "_x99 1+0x140") | taint("a", "_x99 1+0x140", APPROPRIATE)
    given |= taint("b", "1+0x140 stale _x99", APPROPRIATE)
    given |= taint("c", "_x99 1+0x40 stale _x99") | taint("c", "1+0x240", APPROPRIATE)
    found = [samples("kubevirt_policy:node_taint_flips:changes1h", {"a": 1, "b": 1, "c": 2}, time="80m")]
    assert run(promtool, rule_file(tmp_path, "name"), [case(given, found)]) == ""


def test_not_converging(tmp_path: Path, promtool: Path) -> None:
    """Evictions and a node that stays far above the average; not without either of them, nor where evictions are
    simulated, which KubeVirt tells by migrating nothing."""
    name = "KubeVirtPolicyRebalancingNotConverging"
    apart, close = [Node("a", 0.9), Node("b", 0.3)], [Node("a", 0.6), Node("b", 0.4)]
    value = {"$value | humanizePercentage": "30%"}
    fires = [told(name, "5m"), told(name, "115m", {"dimension": "cpu"}, **value)]
    moving = {"kubevirt_vmi_migrations_in_running_phase": "0+0x130 1 0+0x110"}
    still = {"kubevirt_vmi_migrations_in_running_phase": "0+0x240"}
    tests = [
        case(inputs(apart, "name") | evicted("0+1x240") | moving, alerts=fires),
        case(inputs(apart, "name") | evicted("0+1x240") | still, alerts=[told(name, "115m")]),
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


def job(last: str = "", created: str = "", **more: str) -> dict[str, str]:
    """What kube-state-metrics says of the CronJob that runs every two minutes."""
    name = f'namespace="{TAINTER}",cronjob="{TAINTER}"'
    given = {
        f"kube_cronjob_info{{{name}}}": "1+0x360",
        f"kube_cronjob_next_schedule_time{{{name}}}": more.get("next", "120+30x360"),
        f"kube_cronjob_status_last_schedule_time{{{name}}}": more.get("before", "0+30x360"),
        f"kube_cronjob_status_last_successful_time{{{name}}}": last,
        f"kube_cronjob_created{{{name}}}": created,
    }
    return {series: values for series, values in given.items() if values}


def deployment(wanted: str, available: str = "") -> dict[str, str]:
    name = f'namespace="{TAINTER}",deployment="{TAINTER}"'
    given = {
        f"kube_deployment_spec_replicas{{{name}}}": wanted,
        f"kube_deployment_status_replicas_available{{{name}}}": available,
    }
    return {series: values for series, values in given.items() if values}


TAINTER_RUNS: Mapping[str, tuple[dict[str, str], str]] = {
    "a CronJob that never fails": (job("0+30x360", "0+0x360"), ""),
    "a CronJob that fails from its 60th minute on": (job("0+30x120 3600+0x240", "0+0x360"), "89m 91m"),
    "a CronJob that never succeeds": (job("", "0+0x360"), "29m 31m"),
    "a CronJob that never succeeds, on OpenShift": (job(), "9m 11m"),
    "a CronJob that runs once an hour": (
        job(
            "0+0x119 3600+0x119 7200+0x120",
            "0+0x360",
            next="3600+0x119 7200+0x119 10800+0x120",
            before="0+0x119 3600+0x119 7200+0x120",
        ),
        "",
    ),
    "a CronJob that was suspended in its 60th minute": (
        job("0+30x120 3600+0x240", "0+0x360", next="120+30x120 stale", before="0+30x120 3600+0x240"),
        "89m 91m",
    ),
    "a Deployment that never fails": ({"kubevirt_policy_softtaint_last_good_pass_timestamp_seconds": "0+30x360"}, ""),
    "a Deployment that fails from its 60th minute on": (
        {"kubevirt_policy_softtaint_last_good_pass_timestamp_seconds": "0+30x120 3600+0x240"},
        "89m 91m",
    ),
    "a Deployment whose standby has no good pass": (
        {
            'kubevirt_policy_softtaint_last_good_pass_timestamp_seconds{pod="a"}': "0+30x360",
            'kubevirt_policy_softtaint_last_good_pass_timestamp_seconds{pod="b"}': "0+0x360",
        },
        "",
    ),
    "a Deployment that never succeeds": (
        {"kubevirt_policy_softtaint_last_good_pass_timestamp_seconds": "0+0x360"},
        "29m 31m",
    ),
    "a Deployment without a pod": (deployment("2+0x360", "0+0x360"), "9m 11m"),
    "a Deployment whose pods nobody counts": (deployment("2+0x360"), "9m 11m"),
    "a Deployment whose metrics another Prometheus has": (deployment("2+0x360", "1+0x360"), ""),
    "a Deployment of no replicas": (deployment("0+0x360", "0+0x360"), ""),
    "other people's jobs": (
        {'kube_cronjob_status_last_successful_time{namespace="else",cronjob="x"}': "0+0x360"},
        "",
    ),
}


@pytest.mark.parametrize("name", TAINTER_RUNS)
def test_tainter_failing(name: str, tmp_path: Path, promtool: Path) -> None:
    """Silent at the first time and firing at the second; without times it is silent to the end."""
    given, times = TAINTER_RUNS[name]
    alert = "KubeVirtPolicySoftTainterFailing"
    silent, fires = times.split() if times else ("170m", "")
    tests = [told(alert, silent), *([told(alert, fires, {})] if fires else [])]
    assert run(promtool, rule_file(tmp_path, "name"), [case(given, alerts=tests)]) == ""


def test_nothing_to_say(tmp_path: Path, promtool: Path) -> None:
    """Without any series there is no record and no alert."""
    rules = [rule for group in catalog.groups(["rebalancing"], catalog.Source()).values() for rule in group.rules]
    records = [nothing(rule.record, "60m") for rule in rules if rule.record]
    silent = [told(rule.alert, "60m") for rule in rules if rule.alert]
    assert run(promtool, rule_file(tmp_path, "name"), [case({"up": "1+0x240"}, records, silent)]) == ""
