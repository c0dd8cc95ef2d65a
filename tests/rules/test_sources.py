"""`load-aware` under every mix of what a node's sources can lack: exactly one sample for each node, within 0…1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from renderer import catalog
from tests.rules.fleet import PREFIX, Convention, Node, expected
from tests.rules.promtool import case, inputs, nothing, rule_file, run, samples

CONVENTIONS: list[Convention] = ["name", "address"]
PRESSURE = {"all": (True, True, True), "some": (True, False, True), "none": (False, False, False)}
MISSING = {"nothing": {}, "the exporter": {"exporters": 0}, "the kubelet": {"kubelet": False}}
RESTARTED, AFTER = 20, ("9m", "9m30s", "10m", "10m30s", "11m")
"""The counters of the first node begin anew at that step; the times before the window has passed it."""
SETTLED = "20m"

BY_NODE = sorted(expected([Node("a")]))
STALLS = [f"{PREFIX}{name}_pressure_stall:ratio" for name in ("cpu", "memory", "io")]
COUNTED = [f"{PREFIX}{name}_pressure_counted:ratio" for name in ("cpu", "memory")]
AVERAGES = [f"kubevirt_policy:workers_{name}:avg" for name in ("cpu_utilization", "memory_utilization")]
PRESSURE_AVERAGES = [f"kubevirt_policy:workers_{name}:avg" for name in ("cpu_pressure", "memory_pressure")]
ADDRESSES = "kubevirt_policy:node_address:info"


def fleets() -> Iterator[tuple[str, Sequence[Node]]]:
    """Three nodes: the first is busy, the second lacks something, the third has two exporters or one."""
    for psi, missing, exporters in product(PRESSURE, MISSING, (1, 2)):
        loads = [Node("a", 0.9, 0.8, (0.4, 0.2, 0.1)), Node("b", 0.8, 0.75, (0.1, 0.05, 0.3)), Node("c", 0.1, 0.2)]
        nodes = [node if has else replace(node, pressure=None) for node, has in zip(loads, PRESSURE[psi], strict=True)]
        nodes[1] = replace(nodes[1], **MISSING[missing])  # type: ignore[arg-type]
        nodes[2] = replace(nodes[2], exporters=exporters)
        yield f"pressure on {psi}, {missing} missing on one, {exporters} exporters on another", nodes


FLEETS = dict(fleets())


def restarted(series: Mapping[str, str]) -> dict[str, str]:
    """Every counter of the first node begins anew."""
    ours = ('instance="a"', 'instance="10.0.0.97', 'node="a"')
    return {
        name: _anew(values) if any(mark in name for mark in ours) and values.startswith("0+") else values
        for name, values in series.items()
    }


def _anew(values: str) -> str:
    growth = values.partition("x")[0].removeprefix("0+")
    return f"1000+{growth}x{RESTARTED - 1} 0+{growth}x{240 - RESTARTED}"


def each_once(record: str, names: Sequence[str], time: str) -> list[dict[str, Any]]:
    """These nodes, each once and under no other label; nothing outside 0…1, no NaN."""
    once = [{"labels": f'{{instance="{name}"}}', "value": 1} for name in names]
    return [
        {"expr": f"count by (instance) ({record})", "eval_time": time, "exp_samples": once},
        {
            "expr": f"({record} * 0 + 1) unless (({record} < 0) or ({record} > 1))",
            "eval_time": time,
            "exp_samples": once,
        },
    ]


def one(record: str, time: str, *, there: bool = True) -> list[dict[str, Any]]:
    """A single sample without labels within 0…1; or none."""
    if not there:
        return [nothing(record, time)]
    sound = [{"labels": "{}", "value": 1}]
    return [{"expr": f"({record} >= bool 0) * ({record} <= bool 1)", "eval_time": time, "exp_samples": sound}]


def sound(nodes: Sequence[Node], convention: Convention, time: str) -> Iterator[dict[str, Any]]:
    """What every record has to be, whatever the sources."""
    names = [node.name for node in nodes]
    measured = [node.name for node in nodes if node.pressure and node.exporters]
    for record in BY_NODE:
        yield from each_once(record, names, time)
    for record in (*STALLS, *COUNTED):
        yield from each_once(record, measured, time)
    for record in AVERAGES:
        yield from one(record, time)
    for record in PRESSURE_AVERAGES:
        yield from one(record, time, there=bool(measured))
    if convention == "address":
        known = [{"labels": f'{{node="{name}"}}', "value": 2} for name in names]
        yield {"expr": f"count by (node) ({ADDRESSES})", "eval_time": time, "exp_samples": known}


def test_no_record_is_forgotten() -> None:
    group = catalog.groups(["load-aware"], catalog.Source("address"))["load-aware"]
    records = [rule.record for rule in group.rules if rule.record]
    assert sorted(records) == sorted([*BY_NODE, *STALLS, *COUNTED, *AVERAGES, *PRESSURE_AVERAGES, ADDRESSES])


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_every_mix_of_sources(convention: Convention, tmp_path: Path, promtool: Path) -> None:
    tests = [
        case(
            inputs(nodes, convention),
            [*(samples(name, values) for name, values in expected(nodes).items()), *sound(nodes, convention, "10m")],
        )
        for nodes in FLEETS.values()
    ]
    assert run(promtool, rule_file(tmp_path, convention, ["load-aware"]), tests) == ""


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_every_mix_of_sources_with_counters_that_begin_anew(
    convention: Convention, tmp_path: Path, promtool: Path
) -> None:
    """Within the window one sample for each node; past it the same values as ever."""
    tests = [
        case(
            restarted(inputs(nodes, convention)),
            [
                *(test for time in AFTER for test in sound(nodes, convention, time)),
                *(samples(name, values, time=SETTLED) for name, values in expected(nodes).items()),
            ],
        )
        for nodes in FLEETS.values()
    ]
    assert run(promtool, rule_file(tmp_path, convention, ["load-aware"]), tests) == ""
