"""The unit tests that come with the catalogue: they pass, and no rule is without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from renderer import catalog, promql
from renderer.catalog.unit_tests import unit_tests
from renderer.promtool import test_rules as promtool_tests
from tests.rules.fleet import Convention
from tests.rules.promtool import rule_file

CONVENTIONS: list[Convention] = ["name", "address"]


@pytest.mark.parametrize("interval", [5, 45, 180, 300, 600])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_they_pass(convention: Convention, interval: int, tmp_path: Path, promtool: Path) -> None:
    rules = rule_file(tmp_path, convention, list(catalog.CATALOG), interval)
    body = unit_tests(list(catalog.CATALOG), catalog.Source(convention, interval)) | {"rule_files": [rules.name]}
    path = tmp_path / "tests.json"
    path.write_text(json.dumps(body))
    ended = promtool_tests(promtool, path, [])
    assert not ended.failed, "\n".join(ended.lines)


@pytest.mark.parametrize("name", catalog.CATALOG)
def test_every_rule_has_one(name: str) -> None:
    source = catalog.Source("address")
    tests = unit_tests([name], source)["tests"]
    read = {found["expr"] for test in tests for found in test["promql_expr_test"]}
    metrics = {metric for expr in read for metric in promql.parse(expr).metrics}
    alerts = {(found["alertname"], bool(found["exp_alerts"])) for test in tests for found in test["alert_rule_test"]}
    for rule in catalog.groups([name], source)[name].rules:
        if rule.record:
            assert rule.record in metrics
        else:
            assert {(rule.alert, True), (rule.alert, False)} <= alerts
