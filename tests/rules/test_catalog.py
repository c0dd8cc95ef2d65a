"""What every group of the catalogue has to satisfy, under every convention and scrape interval."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from renderer import catalog, promql
from renderer.catalog.model import RUNBOOKS
from renderer.releases import prometheus
from renderer.releases.versions import Version
from tests.repository import cluster, errors, loaded, policy, render, warnings
from tests.rules.fleet import Convention
from tests.rules.promtool import rule_file

ROOT = Path(__file__).parents[2]
SOURCES = [catalog.Source(names, interval) for names in ("name", "address") for interval in (5, 15, 30, 60, 120)]
RULES = [rule for group in catalog.groups(catalog.CATALOG, catalog.Source("address")).values() for rule in group.rules]
ALERTS = [rule for rule in RULES if rule.alert]
CONVENTIONS: list[Convention] = ["name", "address"]


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_our_own_findings(source: catalog.Source) -> None:
    """As own groups of a policy, the catalogue's rules would pass, but for the names that are reserved for them."""
    groups = [
        {
            "name": name,
            "rules": [{("alert" if rule.alert else "record"): rule.name, "expr": rule.expr} for rule in group.rules],
        }
        for name, group in catalog.groups(catalog.CATALOG, source).items()
    ]
    here = cluster(versions={"hyperconverged": "1.14"}, monitoring={"scrapeInterval": f"{source.scrape_interval}s"})
    outcome = render([here, policy("RecordingRules", groups=groups)])
    assert errors(outcome) == {"rules/reserved-name"}
    assert warnings(outcome) == set()


def test_names() -> None:
    records = [rule.record for rule in RULES if rule.record]
    assert len(records) == len(set(records))
    assert all(name.startswith("kubevirt_policy:") for name in records)
    assert all(rule.alert.startswith("KubeVirtPolicy") for rule in ALERTS)


def test_functions_are_old_enough() -> None:
    """Prometheus 2.26 is enough; nothing needs a feature flag."""
    oldest = Version(2, 26)
    called = {call.name for rule in RULES for call in promql.parse(rule.expr).calls}
    assert {name for name in called if not prometheus.known(name, oldest)} == set()


def test_no_record_can_be_nan() -> None:
    assert [rule.name for rule in RULES if promql.parse(rule.expr).may_be_nan] == []


def test_order() -> None:
    """A rule reads only what was recorded before it, or by a group that comes along."""
    known: set[str] = set()
    for group in catalog.groups(["rebalancing"], catalog.Source("address")).values():
        for rule in group.rules:
            own = {name for name in promql.parse(rule.expr).metrics if name.startswith("kubevirt_policy:")}
            assert own <= known, rule.name
            known.add(rule.record)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule.alert)
def test_alert(rule: catalog.Rule) -> None:
    """Severity, words, a runbook that is there and is about it, and tests in which it fires and is silent."""
    page = ROOT / RUNBOOKS / f"{rule.alert}.md"
    assert rule.labels["severity"] in ("info", "warning", "critical")
    assert rule.wait
    assert set(rule.annotations) == {"summary", "description", "runbook_url"}
    assert rule.annotations["runbook_url"] == f"{RUNBOOKS}/{rule.alert}.md"
    assert page.read_text().startswith(f"# {rule.alert}\n")
    assert rule.annotations["summary"].endswith(".")
    assert rule.annotations["description"].endswith(".")


def test_every_page_is_about_an_alert() -> None:
    pages = {path.stem for path in (ROOT / RUNBOOKS).glob("*.md")}
    assert pages == {rule.alert for rule in ALERTS}


def test_pages_name_what_is_recorded() -> None:
    """Records that a page or runbook names are there."""
    records = {rule.record for rule in RULES}
    for page in [*(ROOT / RUNBOOKS).glob("*.md"), ROOT / "docs/policies/recording-rules.md"]:
        named = set(re.findall(r"kubevirt_policy:\w+:\w+", page.read_text()))
        assert named <= records, page.name


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_prometheus_would_load_them(convention: Convention, tmp_path: Path, promtool: Path) -> None:
    path = rule_file(tmp_path, convention)
    command = [str(promtool), "check", "rules", "--lint=all", "--lint-fatal", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_one_object_for_two_policies() -> None:
    """The bytes do not depend on the policy, nor on how many name the group, but for the header."""
    here = cluster(versions={"hyperconverged": "1.14"})
    one = render([here, policy("RecordingRules", "a", catalog=["rebalancing"])])
    both = [policy("RecordingRules", name, catalog=["load-aware", "rebalancing"]) for name in "ab"]
    two = render([here, *both])
    assert errors(two) == set()
    assert one.files.keys() == two.files.keys()
    for path in one.files:
        name = path.removeprefix("overlays/here/")
        assert loaded(one, name) == loaded(two, name)


def test_a_rebalance_policy_brings_its_rules() -> None:
    """On Kubernetes; naming the group as well changes nothing but the header."""
    versions = {"kubevirt": "1.5", "descheduler": "0.36"}
    here = cluster(platform="kubernetes", versions=versions, monitoring={"url": "http://prometheus.monitoring:9090"})
    balance = policy("RebalancePolicy", mode="Automatic")
    alone, named = render([here, balance]), render([here, balance, policy("RecordingRules", catalog=["load-aware"])])
    path = "overlays/here/recording-rules/kubevirt-policy-load-aware.yaml"
    assert errors(alone) == errors(named) == set()
    assert alone.files.keys() == named.files.keys()
    assert alone.files[path].splitlines()[2:] == named.files[path].splitlines()[2:]
    assert "# Policies: RebalancePolicy/it, RecordingRules/it" in named.files[path]
