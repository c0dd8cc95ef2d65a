"""The job, run as its rendered account, against a real API server and a real Prometheus."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from renderer.softtaint.lease import LAST_GOOD
from tests.softtaint import (
    GOOD,
    LEASE,
    NO_SAMPLES,
    REMOVED,
    WRONG,
    Tainter,
)
from tests.softtaint_nodes import FAIR, OVER, foreign
from tests.softtaint_runs import (
    DEAD,
    OLD,
    WANTED,
    Configured,
    Plain,
    config,
    logged,
    patches,
    plain,
    tainter,
    write,
)
from tests.testbed.fixtures import SERVERS
from tests.testbed.monitoring import Monitoring
from tests.testbed.nodes import SCHEDULABLE, Object, condition, fleet, listed, small, taints

__all__ = ["config", "plain", "tainter"]

pytestmark = SERVERS


# The taints of nodes


def test_every_node_is_brought_to_its_taints_in_one_write_each(tainter: Tainter, config: Configured) -> None:
    soft, dated = "PreferNoSchedule", {"timeAdded": "2026-01-02T03:04:05Z"}
    a, b, c = foreign("a", soft), foreign("b", soft, **dated), foreign("c", soft)
    old = {**OVER, **dated}
    alien, hard = {**OVER, "value": "yes"}, {**FAIR, "effect": "NoSchedule"}
    before = {"idle": [a, FAIR, b, OVER, c], "fair": [OVER, b], "busy": [b], "busier": [old, b, c]}
    wanted = {"idle": [a, b, c], "fair": [b, FAIR], "busy": [b, OVER, FAIR], "busier": [old, b, c, FAIR]}
    nodes = [small(name, taints=list_) for name, list_ in before.items()]
    nodes += [small("left", taints=[OVER, a, FAIR]), small("alien", taints=[alien, hard])]
    nodes[-2]["metadata"]["labels"].pop(next(iter(SCHEDULABLE)))
    nodes += [small("unready", taints=[OVER, FAIR]), small("cordoned", unschedulable=True)]
    nodes[-2]["status"]["conditions"] = [condition("Ready", "Unknown")]
    nodes += [small("marked", taints=[foreign("ToBeDeletedByClusterAutoscaler"), OVER])]
    with fleet(tainter.admin, nodes):
        first = tainter.run(config())
        after = {name: taints(node) for name, node in listed(tainter.admin).items()}
        second = tainter.run(config())
    assert first.code == GOOD, first.text
    assert {name: after[name] for name in wanted} == wanted
    assert after["left"] == [a]
    assert after["alien"] == [alien, hard]
    # No sample, or not ready: as they were.
    assert (after["unready"], after["cordoned"], len(after["marked"])) == ([OVER, FAIR], [], 2)
    assert patches(first) == 5
    assert logged(first, "somebody else set taints with our keys: they are left as they are")[0]["node"] == "alien"
    assert (second.code, patches(second)) == (GOOD, 0), second.text
    assert second.summary["changes"] == {}


def test_a_change_is_told_in_the_log_in_events_and_in_the_summary(
    tainter: Tainter, config: Configured, plain: Plain
) -> None:
    run = tainter.run(config())
    assert plain() == WANTED
    told = logged(run, "taints changed")
    assert {(line["node"], line["from"], line["to"], line["usage"], line["low"], line["high"]) for line in told} == {
        ("fair", 0, 1, 30, 20, 50),
        ("busy", 0, 2, 80, 20, 50),
        ("busier", 0, 2, 90, 20, 50),
    }
    end = run.summary
    assert (end["outcome"], end["exit_code"], end["nodes"], end["in_scope"], end["judged"]) == ("done", 0, 4, 4, 4)
    assert end["taints"] == {"0": 1, "1": 1, "2": 2}
    assert end["changes"] == {"0->1": 1, "0->2": 2}
    assert end["signal"] is True
    assert end["events"] == {"written": 3}
    write(tainter, "busy", [])
    assert tainter.run(config()).code == GOOD
    [event] = [
        event
        for event in tainter.admin.get("/api/v1/namespaces/default/events")["items"]
        if event["involvedObject"]["uid"] == listed(tainter.admin)["busy"]["metadata"]["uid"]
    ]
    assert (event["count"], event["reason"], event["involvedObject"]["kind"]) == (2, "SoftTaintsChanged", "Node")
    assert event["message"] == "Soft taints 0 -> 2 at 80 % utilization: over-utilized"


@pytest.mark.parametrize("mode", ["flag", "configuration"])
def test_dry_runs_say_what_they_would_do(tainter: Tainter, config: Configured, plain: Plain, mode: str) -> None:
    arguments = ["--dry-run"] if mode == "flag" else []
    run = tainter.run(config(mode="Enforce" if mode == "flag" else "DryRun"), *arguments)
    assert run.code == GOOD, run.text
    told = logged(run, "taints would be changed")
    assert sorted((line["from"], line["to"]) for line in told) == [(0, 1), (0, 2), (0, 2)]
    assert (run.summary["changes"], run.summary["writes"]) == ({}, {"would_write": 3})
    assert (patches(run), run.summary["events"]) == (0, {})
    assert set(map(len, plain().values())) == {0}
    assert tainter.admin.exists(LEASE) is (mode == "configuration")


def test_remove_only_cleans_without_samples_and_then_does_nothing(
    tainter: Tainter, config: Configured, plain: Plain
) -> None:
    write(tainter, "idle", [foreign(), OVER, FAIR])
    write(tainter, "busy", [FAIR])
    dry = tainter.run(config(DEAD, mode="RemoveOnly"), "--dry-run", f"--prometheus-url={DEAD}")
    assert (dry.code, len(logged(dry, "taints would be changed"))) == (GOOD, 2)
    asked_of_nobody = config(None, mode="RemoveOnly", query=None)  # as it is rendered
    assert tainter.run(asked_of_nobody).code == GOOD
    assert plain() == {"idle": [foreign()], "fair": [], "busy": [], "busier": []}
    assert patches(tainter.run(asked_of_nobody)) == 0


def test_a_single_node_is_left_without(tainter: Tainter, config: Configured) -> None:
    with fleet(tainter.admin, [small("busy", taints=[OVER, foreign()])]):
        run = tainter.run(config(DEAD))
        assert (run.code, taints(listed(tainter.admin)["busy"])) == (GOOD, [foreign()]), run.text
        assert run.summary["signal"] is False


# Samples


@pytest.mark.parametrize(("rule", "left"), [("Keep", [FAIR]), ("Remove", [])])
def test_samples_that_cannot_be_used(tainter: Tainter, config: Configured, rule: str, left: list[Object]) -> None:
    wrong = ["nan", "inf", "high", "low", "twice", "old", "absent", "named"]
    nodes = [small(name, taints=[FAIR]) for name in wrong] + [small("good"), small("better")]
    outside = small("other")
    outside["metadata"]["labels"] = {}
    with fleet(tainter.admin, [*nodes, outside]):
        run = tainter.run(config(query="odd", missingSample=rule, staleAfterSeconds=OLD // 2))
        found = {name: taints(node) for name, node in listed(tainter.admin).items()}
    assert run.code == GOOD, run.text
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, left)
    assert (found["good"], found["better"]) == ([], [OVER, FAIR])
    told = {(line["node"], line["reason"]) for line in logged(run, "a sample cannot be used")}
    assert told == {
        ("nan", "not_finite"),
        ("inf", "not_finite"),
        ("high", "out_of_range"),
        ("low", "out_of_range"),
        ("twice", "two_series"),
        ("old", "stale"),
        ("absent", "missing"),
        ("named", "missing"),
        ("named.example.com", "unknown_node"),
        ("stranger", "unknown_node"),
    }
    assert "there is a series named named.example.com" in run.text
    assert run.summary["rejected_samples"] == {
        "missing": 2, "not_finite": 2, "out_of_range": 2, "stale": 1, "two_series": 1, "unknown_node": 2
    }  # fmt: skip


@pytest.mark.parametrize(
    ("url", "query", "said"),
    [
        (DEAD, "load", "Connection refused"),
        ("", "nothing", "no node has a valid sample"),
        ("", "load[5m]", "status 400"),
        ("", "sum(", "status 400"),
        ("https", "load", "SSL"),
    ],
)
def test_without_samples_nothing_changes(
    tainter: Tainter,
    config: Configured,
    prometheus: Monitoring,
    plain: Plain,
    url: str,
    query: str,
    said: str,
) -> None:
    write(tainter, "idle", [OVER, FAIR])
    address = prometheus.url.replace("http", "https") if url == "https" else url or prometheus.url
    run = tainter.run(config(query=query), f"--prometheus-url={address}")
    assert (run.code, patches(run)) == (NO_SAMPLES, 0), run.text
    assert said in run.summary["error"]
    assert plain()["idle"] == [OVER, FAIR]


def test_after_too_long_without_samples_the_taints_go(tainter: Tainter, config: Configured, plain: Plain) -> None:
    assert tainter.run(config()).code == GOOD
    assert tainter.run(config(DEAD)).code == NO_SAMPLES
    assert plain() == WANTED
    good_at(tainter, 650)
    assert tainter.run(config(DEAD, staleAfterSeconds=700)).code == NO_SAMPLES
    run = tainter.run(config(DEAD))
    assert (run.code, run.summary["outcome"]) == (REMOVED, "stale"), run.text
    assert set(map(len, plain().values())) == {0}
    again = tainter.run(config(DEAD))
    assert (again.code, patches(again)) == (REMOVED, 0)
    assert tainter.run(config()).code == GOOD
    assert plain() == WANTED
    assert tainter.run(config(DEAD)).code == NO_SAMPLES


def good_at(tainter: Tainter, seconds: int) -> None:
    """The last good pass was so long ago."""
    moment = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="seconds")
    tainter.admin.merge(LEASE, {"metadata": {"annotations": {LAST_GOOD: moment}}})


# Usage


def test_all_that_is_wrong_with_a_configuration_is_told_at_once(tainter: Tainter, config: Configured) -> None:
    run = tainter.run(config(mode="Perhaps", everySeconds=0, more=1))
    assert run.code == WRONG
    assert len(logged(run, "the configuration is wrong")) == 3, run.text
    assert tainter.run(tainter.folder / "nowhere.json").code == WRONG
    assert tainter.run(config(), "--prometheus-url=ftp://x").code == WRONG
    assert tainter.run(config(), "--kubeconfig=/nonexistent").code == WRONG
    assert tainter.run(config(), "--unknown").code == WRONG
    broken = tainter.folder / "broken.kubeconfig"
    broken.write_text("clusters: [}")
    assert tainter.run(config(), f"--kubeconfig={broken}").code == WRONG
