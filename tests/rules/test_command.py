"""`kubevirt-policy test` with the real promtool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.repository import cluster, policy

RULE = {"record": "team:net:rate5m", "expr": "sum by (instance) (\n  rate(node_network_receive_bytes_total[5m])\n)"}
UNIT = """\
evaluation_interval: 1m
rule_files: [left/over.yaml]
tests:
- interval: 1m
  input_series:
  - {{series: 'node_network_receive_bytes_total{{instance="a"}}', values: '0+60x20'}}
  - {{series: 'odd', values: 'NaN+0x20'}}
  promql_expr_test:
  - expr: team:net:rate5m
    eval_time: 10m
    exp_samples: [{{labels: 'team:net:rate5m{{instance="a"}}', value: {value}}}]
  - {{expr: 'vector(1) / 0', eval_time: 1m, exp_samples: [{{labels: '{{}}', value: .inf}}]}}
"""


def repository(root: Path, unit: str, **spec: object) -> None:
    rules = policy("RecordingRules", "team", groups=[{"name": "nodes", "rules": [RULE]}], tests=["t/net.yaml"], **spec)
    (root / "policies").mkdir()
    (root / "t").mkdir()
    (root / "policies/all.yaml").write_text(yaml.safe_dump_all([*(cluster(name, versions=_V) for name in "ab"), rules]))
    (root / "t/net.yaml").write_text(unit)


_V = {"hyperconverged": "1.14", "prometheus": "3.16"}


def run(root: Path, promtool: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "renderer", "test", "--root", str(root), "--promtool", str(promtool)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_passing(tmp_path: Path, promtool: Path) -> None:
    """The rules of two clusters are alike and tested once; infinity and NaN are told to promtool as they are."""
    repository(tmp_path, UNIT.format(value="1"), catalog=["rebalancing"])
    ended = run(tmp_path, promtool)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert (
        "Tested the rules of 2 clusters with 1 file of unit tests and the catalogue's own: all passed." in ended.stderr
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["policies", "t"]


def test_failing(tmp_path: Path, promtool: Path) -> None:
    repository(tmp_path, UNIT.format(value="2"))
    ended = run(tmp_path, promtool)
    lines = (tmp_path / "policies/all.yaml").read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "expr:" in text)
    assert ended.returncode == 1
    assert f"policies/all.yaml:{line}:" in ended.stdout
    assert "the unit tests of t/net.yaml fail, on team:net:rate5m [rules/test-failed]" in ended.stdout
    assert 'got: {__name__="team:net:rate5m", instance="a"} 1E+00' in ended.stdout
    assert "clusters: a, b." in ended.stdout


@pytest.mark.parametrize("unit", ["tests: [", "- a", "tests: 5", "{a: 1}", ""])
def test_no_unit_tests(unit: str, tmp_path: Path, promtool: Path) -> None:
    """A file that promtool cannot read: told, and no crash."""
    repository(tmp_path, unit)
    ended = run(tmp_path, promtool)
    assert ended.returncode == 1
    assert "[rules/test-failed]" in ended.stdout


def test_errors_come_first(tmp_path: Path, promtool: Path) -> None:
    repository(tmp_path, UNIT.format(value="1"), priority="high")
    ended = run(tmp_path, promtool)
    assert ended.returncode == 1
    assert "Nothing was tested" in ended.stderr
