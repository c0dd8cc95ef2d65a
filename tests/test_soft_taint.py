"""`softTaint` on every release: who taints, by which thresholds, and that the job can read what is rendered for it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Meta

from renderer.kinds.cluster import SOFT_TAINTER
from renderer.kinds.fields import Image
from renderer.kinds.soft_taint_schedule import nearest, schedule
from renderer.releases.descheduler_operator import DEVIATION, SCHEMAS, STATIC
from renderer.softtaint.config import NAME, Config, decode
from tests import repository
from tests.test_releases_rebalance import VERSIONS

ROOT = Path(__file__).parents[1]
IMAGE = f"registry.example/soft-tainter@sha256:{64 * 'a'}"

KUBERNETES: dict[str, Any] = {
    "platform": "kubernetes",
    "versions": {"kubevirt": "1.9", "descheduler": "0.36", "kubernetes": "1.36"},
    "monitoring": {"url": "http://prometheus.monitoring.svc:9090"},
}


def taint(**fields: Any) -> dict[str, Any]:
    return {"mode": "Enforce", "image": IMAGE, **fields}


def on_openshift(schema: str, coming: str = "", **wanted: Any) -> Any:
    spec: dict[str, Any] = {
        "versions": {"hyperconverged": "1.14", "deschedulerOperator": VERSIONS[schema], "kubernetes": "1.30"}
    }
    if coming:
        spec["upgradingTo"] = {"deschedulerOperator": VERSIONS[coming]}
    return repository.render([repository.cluster(**spec), repository.policy("RebalancePolicy", **wanted)])


def on_kubernetes(monitoring: dict[str, Any] | None = None, **wanted: Any) -> Any:
    spec = {**KUBERNETES, "monitoring": monitoring or KUBERNETES["monitoring"]}
    whole = {"mode": "Automatic", "softTaint": taint(), **wanted}
    return repository.render([repository.cluster(**spec), repository.policy("RebalancePolicy", **whole)])


def config(outcome: Any) -> Config:
    """The configuration as the job itself reads it."""
    return decode(repository.loaded(outcome, "soft-tainter/configmap.yaml")["data"]["config.json"].encode())


def has_job(outcome: Any) -> bool:
    return any("/soft-tainter/" in path for path in outcome.files)


def switched_on(outcome: Any) -> bool:
    custom = repository.loaded(outcome, "descheduler/kubedescheduler.yaml")["spec"].get("profileCustomizations", {})
    return custom.get("devEnableSoftTainter") is True


JOB, SWITCH, TWO, PREDICTIVE = "job", "switch", "soft-taint/two-tainters", "soft-taint/predictive"
UNSUPPORTED = "soft-taint/unsupported"
# Schemas; softTaint's mode; what comes of it in mode Automatic, and in mode Predictive.
WHO = [
    (("4.12", "4.13", "4.14", "4.15", "4.16", "4.17"), "Enforce", JOB, PREDICTIVE),
    (("4.12", "4.13", "4.14", "4.15", "4.16", "4.17"), "DryRun", JOB, JOB),
    (("4.12", "4.13", "4.14", "4.15", "4.16", "4.17"), "RemoveOnly", JOB, JOB),
    (("4.18",), "Enforce", UNSUPPORTED, PREDICTIVE),
    (("4.18",), "DryRun", TWO, TWO),
    (("4.18",), "RemoveOnly", TWO, JOB),
    (("4.19", "4.20", "4.21", "4.22", "4.23"), "Enforce", TWO, TWO),
    (("4.19", "4.20", "4.21", "4.22", "4.23"), "DryRun", TWO, TWO),
    (("4.19", "4.20", "4.21", "4.22", "4.23"), "RemoveOnly", TWO, JOB),
]
TABLE = [(schema, *rest) for schemas, *rest in WHO for schema in schemas]


def test_table_is_whole() -> None:
    assert sorted(row[:2] for row in TABLE) == sorted(
        (schema, mode) for schema in SCHEMAS for mode in ("Enforce", "DryRun", "RemoveOnly")
    )


@pytest.mark.parametrize(("schema", "mode", "automatic", "predictive"), TABLE)
def test_who_taints(schema: str, mode: str, automatic: str, predictive: str) -> None:
    for policy, expected in (("Automatic", automatic), ("Predictive", predictive)):
        outcome = on_openshift(schema, mode=policy, profiles=["LifecycleAndUtilization"], softTaint=taint(mode=mode))
        codes = {code for code in repository.errors(outcome) if code.startswith("soft-taint/")}
        if expected == JOB:
            assert codes == set()
            assert has_job(outcome)
            assert config(outcome).mode == mode
        else:
            assert expected in codes


@pytest.mark.parametrize("schema", SCHEMAS)
def test_only_the_release_with_a_switch_gets_it(schema: str) -> None:
    wanted: dict[str, Any] = {"mode": "Automatic", "utilization": "CPUCombined", "softTaint": taint()}
    outcome = on_openshift(schema, **wanted)
    if schema == "4.18":
        assert not repository.errors(outcome)
        assert switched_on(outcome)
        assert not has_job(outcome)
        for mode in ("DryRun", "RemoveOnly"):
            assert not switched_on(on_openshift(schema, **{**wanted, "softTaint": taint(mode=mode)}))
    elif SCHEMAS.index(schema) > SCHEMAS.index("4.18"):
        assert repository.errors(outcome) == {TWO}
        assert not switched_on(outcome)


@pytest.mark.parametrize("coming", ["4.18", "4.19", "4.23"])
def test_before_an_upgrade_ours_must_go(coming: str) -> None:
    wanted: dict[str, Any] = {"mode": "Automatic", "profiles": ["LongLifecycle"]}
    for mode in ("Enforce", "DryRun"):
        assert TWO in repository.errors(on_openshift("4.17", coming, **wanted, softTaint=taint(mode=mode)))
    outcome = on_openshift("4.17", coming, **wanted, softTaint=taint(mode="RemoveOnly"))
    assert not repository.errors(outcome)
    assert config(outcome).mode == "RemoveOnly"


POINTS = [
    *(({"thresholds": {"deviation": name}}, *pair, True) for name, pair in DEVIATION.items()),
    *(({"thresholds": {"static": name}}, *pair, False) for name, pair in STATIC.items()),
    ({}, 0, 10, True),
    ({"profiles": ["LongLifecycle"], "utilization": "CPUUsage"}, 20, 50, False),
]


@pytest.mark.parametrize(("wanted", "low", "high", "deviation"), POINTS)
def test_job_and_descheduler_have_the_same_thresholds_and_query(
    wanted: dict[str, Any], low: int, high: int, deviation: bool
) -> None:
    outcome = on_kubernetes(**wanted)
    read = config(outcome)
    assert (read.thresholds.low, read.thresholds.high, read.thresholds.deviation) == (low, high, deviation)
    text = repository.loaded(outcome, "descheduler/configmap.yaml")["data"]["policy.yaml"]
    [args] = [
        plugin["args"]
        for profile in yaml.safe_load(text)["profiles"]
        for plugin in profile["pluginConfig"]
        if plugin["name"] == "LowNodeUtilization"
    ]
    assert args["thresholds"] == {"MetricResource": low}
    assert args["targetThresholds"] == {"MetricResource": high}
    assert args.get("useDeviationThresholds", False) is deviation
    assert args["metricsUtilization"]["prometheus"]["query"] == read.query


def test_selector_is_the_deschedulers() -> None:
    assert config(on_kubernetes()).node_selector == {"kubevirt.io/schedulable": "true"}


MEASURES = ["CPUUsage", "IOPressure", {"query": ' clamp(load{a="§"}, 0, 1)\n'}]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "url", ["http://a", "https://[::1]/prefix", "http://prometheus.monitoring.svc.cluster.local.:80"]
)
def test_job_can_read_what_is_rendered(measure: Any, url: str) -> None:
    fields = {
        "hysteresisPoints": 0,
        "maxTaintedPercent": 100,
        "missingSample": "Remove",
        "staleAfter": "1h30m",
        "every": "1h",
        "runAs": "Deployment",
    }
    read = config(on_kubernetes(monitoring={"url": url}, utilization=measure, softTaint=taint(**fields)))
    assert (read.hysteresis_points, read.max_tainted_percent, read.missing_sample) == (0, 100, "Remove")
    assert (read.stale_after_seconds, read.every_seconds, read.run_as) == (5400, 3600, "Deployment")
    assert read.source[0].url == url
    assert (read.source[0].token_file is None) == url.startswith("http:")


@pytest.mark.parametrize(
    ("url", "port"),
    [("http://a", 80), ("https://a", 443), ("https://[::1]:9443/b", 9443), ("http://a:99999", 80), ("http://a:b", 80)],
)
def test_way_to_prometheus_is_open(url: str, port: int) -> None:
    wanted: dict[str, Any] = {"profiles": ["LifecycleAndUtilization"]}
    body = repository.loaded(on_kubernetes(monitoring={"url": url}, **wanted), "soft-tainter/networkpolicy.yaml")
    assert sorted({443, 6443, port}) == [wire["port"] for wire in body["spec"]["egress"][1]["ports"]]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (60, "* * * * *"),
        (120, "*/2 * * * *"),
        (1800, "*/30 * * * *"),
        (3600, "0 * * * *"),
        (7200, "0 */2 * * *"),
        (43_200, "0 */12 * * *"),
        (86_400, "0 0 * * *"),
        *((seconds, None) for seconds in (1, 59, 90, 420, 2400, 5400, 18_000, 90_000)),
    ],
)
def test_schedule(seconds: int, words: str | None) -> None:
    assert schedule(seconds) == words


def test_every_schedule_comes_round_evenly() -> None:
    for seconds in range(60, 86_401, 60):
        words = schedule(seconds)
        if words is not None:
            minutes, hours, *rest = words.split()
            step = int(minutes.removeprefix("*/")) if "/" in minutes else 1
            assert rest == ["*", "*", "*"]
            assert 60 % step == 0 or "/" in hours
            assert 86_400 % seconds == 0


@pytest.mark.parametrize(
    ("seconds", "near"),
    [(1, ["1m"]), (90, ["1m", "2m"]), (2400, ["30m", "1h"]), (90_000, ["24h"]), (18_000, ["4h", "6h"])],
)
def test_nearest(seconds: int, near: list[str]) -> None:
    assert nearest(seconds) == near


DIGEST = f"@sha256:{64 * '0'}"


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (f"registry.example/a/b{DIGEST}", True),
        (f"registry.example:5000/a:1.2{DIGEST}", True),
        ("localhost/a", True),
        ("a", True),
        ("Registry.Example/a__b/c-d.e:T_1", True),
        (f"[2001:db8::1]:5000/a{DIGEST}", True),
        *(
            (text, False)
            for text in (
                "",
                "a ",
                "A",
                "a/B",
                "a:",
                "a@sha256:00",
                f"a{DIGEST}\n",
                f"a{DIGEST.upper()}",
                "-a",
                "a//b",
                "http://a/b",
                "a:b:c",
                f"a:{129 * 'b'}",
                "a\n- b",
            )
        ),
    ],
)
def test_image_references(text: str, valid: bool) -> None:
    [rule] = [one for one in Image.__metadata__ if isinstance(one, Meta)]  # type: ignore[attr-defined]
    assert (re.search(rule.pattern or "", text) is not None) is valid


def test_a_long_image_is_judged_at_once() -> None:
    for text in ("a" * 511 + "!", "a-" * 255 + "!", "a_" * 200, "a." * 255 + "/"):
        assert "policy/value" in repository.errors(on_kubernetes(softTaint=taint(image=text)))


def test_a_fleet_without_it_does_not_load_it() -> None:
    code = (
        "import sys; from tests import repository as r; "
        "r.render([r.cluster(versions={'hyperconverged': '1.17', 'deschedulerOperator': '5.3.3'}), "
        "r.policy('RebalancePolicy', mode='Automatic')]); "
        "print([name for name in sys.modules if 'kinds.soft_taint' in name])"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "['renderer.kinds.soft_taint_spec']"


LEFT = "soft-taint/left-behind"
# The policy and cluster that come after one with `softTaint` in a mode, and whether something would be left.
AFTERWARDS: list[tuple[str, list[dict[str, Any]], bool]] = [
    ("Enforce", [repository.policy("RebalancePolicy", mode="Automatic")], True),
    ("Enforce", [], True),
    ("Enforce", [repository.policy("RebalancePolicy", mode="Automatic", softTaint=taint())], False),
    ("Enforce", [repository.policy("RebalancePolicy", mode="Automatic", softTaint=taint(mode="RemoveOnly"))], False),
    ("Enforce", [repository.policy("RebalancePolicy", mode="Automatic", softTaint=taint(mode="DryRun"))], True),
    ("DryRun", [repository.policy("RebalancePolicy", mode="Automatic", softTaint=taint(mode="DryRun"))], False),
    ("DryRun", [], False),
    ("RemoveOnly", [], False),
]


@pytest.mark.parametrize(("mode", "after", "left"), AFTERWARDS)
def test_taints_are_not_left_behind(mode: str, after: list[dict[str, Any]], left: bool) -> None:
    cluster = repository.cluster(**KUBERNETES)
    files = on_kubernetes(softTaint=taint(mode=mode)).files
    assert (LEFT in repository.errors(repository.render([cluster, *after], files))) is left
    if not after:
        elsewhere = repository.cluster("other", **KUBERNETES)
        assert (LEFT in repository.errors(repository.render([elsewhere], files))) is left


@pytest.mark.parametrize("mode", ["Automatic", "Predictive"])
@pytest.mark.parametrize("schema", ["4.17", "4.18", "4.21"])
def test_operator_takes_over_in_mode_automatic(schema: str, mode: str) -> None:
    files = on_openshift("4.17", mode="Automatic", profiles=["LongLifecycle"], softTaint=taint()).files
    outcome = repository.render(
        [
            repository.cluster(versions={"hyperconverged": "1.14", "deschedulerOperator": VERSIONS[schema]}),
            repository.policy("RebalancePolicy", mode=mode, profiles=["LongLifecycle"]),
        ],
        files,
    )
    assert (LEFT in repository.errors(outcome)) is (schema == "4.17" or mode == "Predictive")


def test_any_other_text_in_that_file_does_no_harm() -> None:
    cluster = repository.cluster(**KUBERNETES)
    for text in ("", "{", '"mode": "Enforce"', 'a\n\n  "mode": "Enforce",'):
        outcome = repository.render([cluster], {"overlays/here/soft-tainter/configmap.yaml": text})
        assert (LEFT in repository.errors(outcome)) is ("Enforce" in text)


def test_nothing_else_is_said_while_there_are_errors() -> None:
    """A policy that cannot be read is not gone."""
    files = on_kubernetes().files
    broken = repository.policy("RebalancePolicy", mode="Automatic", softTaint={"mode": "Enforce"})
    assert repository.errors(repository.render([repository.cluster(**KUBERNETES), broken], files)) == {
        "policy/missing-key"
    }


def test_a_cluster_knows_the_namespace_of_the_job() -> None:
    assert SOFT_TAINTER == NAME
