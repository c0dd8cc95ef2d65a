"""Unit tests for promtool, written as plain data."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from renderer import catalog
from tests.rules.fleet import Convention, Node, series

INTERVAL = 30
STEPS = 240


def rule_file(
    folder: Path, convention: Convention, names: Sequence[str] = ("rebalancing",), interval: int = INTERVAL
) -> Path:
    """The catalogue's groups and those that they need, as Prometheus reads them."""
    groups = []
    for group in catalog.groups(names, catalog.Source(convention, interval)).values():
        rules = [_rule(rule) for rule in group.rules]
        groups.append({"name": group.name, "interval": group.interval, "rules": rules})
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": groups}))
    return path


def _rule(rule: catalog.Rule) -> dict[str, Any]:
    kind = "record" if rule.record else "alert"
    found = {kind: rule.name, "expr": rule.expr, "labels": dict(rule.labels), "annotations": dict(rule.annotations)}
    return {key: value for key, value in (found | {"for": rule.wait}).items() if value}


def inputs(nodes: Sequence[Node], convention: Convention, **more: str) -> dict[str, str]:
    """What the exporters of the nodes say, in promtool's notation."""
    return {one.labels: one.values(INTERVAL, STEPS) for one in series(nodes, convention)} | more


def samples(record: str, values: Mapping[str, float], label: str = "instance", time: str = "10m") -> dict[str, Any]:
    """An expression test: exactly these samples at that time, each with that label alone, to a millionth."""
    wanted = [{"labels": f'{{{label}="{name}"}}', "value": round(value, 6)} for name, value in sorted(values.items())]
    return {"expr": f"round({record} * 1e6) / 1e6", "eval_time": time, "exp_samples": wanted}


def nothing(expr: str, time: str = "10m") -> dict[str, Any]:
    """An expression test: no sample at all."""
    return {"expr": expr, "eval_time": time, "exp_samples": []}


def told(name: str, time: str, labels: Mapping[str, str] | None = None, **values: str) -> dict[str, Any]:
    """An alert that fires at that time with these labels, or without labels is silent."""
    if labels is None:
        return {"eval_time": time, "alertname": name, "exp_alerts": []}
    groups = catalog.groups(["rebalancing"], catalog.Source()).values()
    rule = next(rule for group in groups for rule in group.rules if rule.alert == name)
    words = dict(rule.annotations)
    for key, value in {**{f"$labels.{label}": text for label, text in labels.items()}, **values}.items():
        words = {word: text.replace(f"{{{{ {key} }}}}", value) for word, text in words.items()}
    fired = {"exp_labels": {"severity": "warning", **labels}, "exp_annotations": words}
    return {"eval_time": time, "alertname": name, "exp_alerts": [fired]}


def case(
    inputs: Mapping[str, str],
    expressions: Sequence[Mapping[str, Any]] = (),
    alerts: Sequence[Mapping[str, Any]] = (),
    interval: str = f"{INTERVAL}s",
) -> dict[str, Any]:
    """One test: series in promtool's notation, then what is evaluated."""
    given = [{"series": name, "values": values} for name, values in inputs.items()]
    return {
        "interval": interval,
        "input_series": given,
        "promql_expr_test": list(expressions),
        "alert_rule_test": list(alerts),
    }


def run(promtool: Path, rules: Path, tests: Sequence[Mapping[str, Any]]) -> str:
    """What promtool says against the tests; nothing where all of them pass."""
    body = {"rule_files": [rules.name], "evaluation_interval": "30s", "fuzzy_compare": True, "tests": list(tests)}
    path = rules.with_name("tests.yaml")
    path.write_text(json.dumps(body, indent=1))
    ended = subprocess.run(
        [promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False, timeout=300
    )
    said = "\n".join(line for line in (ended.stdout + ended.stderr).splitlines() if line.strip())
    return "" if ended.returncode == 0 else said
