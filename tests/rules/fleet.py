"""Nodes with a known load: what their exporters say, and what the rules should make of it, computed anew in Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

Convention = Literal["name", "address"]
Load = Mapping[str, float]

PREFIX = "kubevirt_policy:node_"
MEMORY = 64 * 2**30


@dataclass(frozen=True)
class Node:
    """A node's use of CPU and memory, its pressures (cpu, memory, io) and where its numbers come from.

    `labelled`: the series of its kubelet have a label for the node; else `instance` is its name.
    """

    name: str
    cpu: float = 0.25
    memory: float = 0.25
    pressure: tuple[float, float, float] | None = (0.0, 0.0, 0.0)
    address: str = ""
    roles: tuple[str, ...] = ()
    exporters: int = 1
    kubelet: bool = True
    labelled: bool = True
    waiting: float = 0.0

    @property
    def host(self) -> str:
        return self.address or f"10.0.0.{sum(self.name.encode()) % 250}"


@dataclass(frozen=True)
class Series:
    """One series: a counter that grows by `rate` a second, or a gauge that stays."""

    labels: str
    rate: float = 0.0
    value: float | None = None

    def values(self, interval: int, steps: int) -> str:
        """In promtool's notation."""
        if self.value is not None:
            return f"{self.value:.15g}+0x{steps}"
        return f"0+{self.rate * interval:.12g}x{steps}"


def series(nodes: Iterable[Node], convention: Convention) -> Iterator[Series]:
    """What node-exporter, kubelet and kube-state-metrics say of the nodes."""
    for node in nodes:
        for number in range(node.exporters):
            yield from _exporter(node, number, convention)
        if node.kubelet:
            yield from _kubelet(node)
        yield Series(f'kube_node_info{{node="{node.name}",internal_ip="{node.host}"}}', value=1)
        yield from (Series(f'kube_node_role{{node="{node.name}",role="{role}"}}', value=1) for role in node.roles)
        yield Series(f'kube_node_status_condition{{node="{node.name}",condition="Ready",status="true"}}', value=1)


def _exporter(node: Node, number: int, convention: Convention) -> Iterator[Series]:
    """The second exporter of a node says half of what the first one does."""
    host = f"[{node.host}]" if ":" in node.host else node.host
    instance = node.name if convention == "name" else f"{host}:{9100 + number}"
    base, share = f'instance="{instance}",job="exporter-{number}"', 1 / (number + 1)
    idle = 1 - node.cpu * share
    for cpu, part in (("0", min(1.0, 2 * idle)), ("1", max(0.0, 2 * idle - 1))):
        yield Series(f'node_cpu_seconds_total{{{base},cpu="{cpu}",mode="idle"}}', part)
        yield Series(f'node_cpu_seconds_total{{{base},cpu="{cpu}",mode="iowait"}}', node.waiting * share)
    yield Series(f"node_memory_MemTotal_bytes{{{base}}}", value=MEMORY)
    yield Series(f"node_memory_MemAvailable_bytes{{{base}}}", value=round(MEMORY * (1 - node.memory * share)))
    for name, stall in zip(("cpu", "memory", "io"), node.pressure or (), strict=False):
        yield Series(f"node_pressure_{name}_waiting_seconds_total{{{base}}}", stall * share)


def _kubelet(node: Node) -> Iterator[Series]:
    base = f'node="{node.name}",instance="{node.host}:10250"' if node.labelled else f'instance="{node.name}"'
    yield Series(f'container_cpu_usage_seconds_total{{{base},id="/"}}', 4 * node.cpu)
    yield Series(f"machine_cpu_cores{{{base}}}", value=4)
    yield Series(f'container_memory_working_set_bytes{{{base},id="/"}}', value=round(MEMORY * node.memory))
    yield Series(f"machine_memory_bytes{{{base}}}", value=MEMORY)


def expected(nodes: Sequence[Node]) -> dict[str, dict[str, float]]:
    """What each record should hold for each node."""
    seen = [node for node in nodes if node.exporters or node.kubelet]
    cpu = {node.name: node.cpu for node in seen}
    memory = {node.name: node.memory for node in seen}
    stalls = [
        {node.name: node.pressure[index] for node in seen if node.pressure and node.exporters} for index in range(3)
    ]
    pressures = [cpu | stalls[0], memory | stalls[1], _io(seen, cpu) | stalls[2]]
    gated = {name: pressures[0][name] if cpu[name] > 0.7 else 0.0 for name in cpu}
    return {
        f"{PREFIX}cpu_utilization:ratio": cpu,
        f"{PREFIX}memory_utilization:ratio": memory,
        f"{PREFIX}cpu_pressure:ratio": pressures[0],
        f"{PREFIX}memory_pressure:ratio": pressures[1],
        f"{PREFIX}io_pressure:ratio": pressures[2],
        f"{PREFIX}cpu_pressure_by_utilization:ratio": gated,
        f"{PREFIX}cpu_combined:ratio": cpu if _average(cpu, seen) < 0.8 else gated,
        f"{PREFIX}cpu_memory_combined:ratio": _distance(seen, cpu, memory, stalls),
    }


def _io(nodes: Sequence[Node], cpu: Load) -> dict[str, float]:
    return {node.name: node.waiting if node.exporters else cpu[node.name] for node in nodes}


def _average(load: Load, nodes: Sequence[Node]) -> float:
    workers = [node.name for node in nodes if node.name in load and not _control_plane(node)]
    return fmean(load[name] for name in workers or load)


def _control_plane(node: Node) -> bool:
    return bool({"control-plane", "master"} & set(node.roles)) and "worker" not in node.roles


def _distance(nodes: Sequence[Node], cpu: Load, memory: Load, stalls: Sequence[Load]) -> dict[str, float]:
    counted = [
        {name: stall if use[name] > 0.7 else 0.0 for name, stall in measured.items()}
        for measured, use in ((stalls[0], cpu), (stalls[1], memory))
    ]
    squares = dict.fromkeys(cpu, 0.0)
    for load in (cpu, memory, *counted):
        for name, value in load.items():
            squares[name] += max(0.0, value - _average(load, nodes)) ** 2
    return {name: min(1.0, 3 * math.sqrt(square)) for name, square in squares.items()}


FLEETS: Mapping[str, Sequence[Node]] = {
    "even": [Node("a"), Node("b"), Node("c")],
    "one busy node": [
        Node("a", 0.9, 0.4, (0.35, 0.1, 0.05)),
        Node("b", 0.3, 0.3, (0.02, 0.0, 0.01)),
        Node("c", 0.2, 0.5, (0.01, 0.0, 0.2)),
    ],
    "memory in need": [Node("a", 0.4, 0.95, (0.1, 0.6, 0.3)), Node("b", 0.4, 0.5), Node("c", 0.4, 0.3)],
    "all busy: pressure counts": [
        Node("a", 0.95, 0.9, (0.5, 0.2, 0.1)),
        Node("b", 0.85, 0.8, (0.1, 0.05, 0.0)),
        Node("c", 0.75, 0.6, (0.05, 0.0, 0.0)),
    ],
    "pressure on some": [
        Node("a", 0.9, 0.8, (0.4, 0.2, 0.1)),
        Node("b", 0.8, 0.7, None, waiting=0.15),
        Node("c", 0.1, 0.2, (0.0, 0.0, 0.0)),
    ],
    "pressure on some, all busy": [
        Node("a", 0.9, 0.8, (0.4, 0.2, 0.1)),
        Node("b", 0.9, 0.9, None),
        Node("c", 0.85, 0.2, (0.1, 0.0, 0.0)),
    ],
    "pressure on none": [Node("a", 0.9, 0.8, None, waiting=0.2), Node("b", 0.2, 0.7, None), Node("c", 0.1, 0.2, None)],
    "kubelet only on one": [
        Node("a", 0.9, 0.8, (0.4, 0.2, 0.1)),
        Node("b", 0.6, 0.7, exporters=0),
        Node("c", 0.1, 0.2),
    ],
    "kubelets without a label for the node": [
        Node("a", 0.9, 0.8, (0.4, 0.2, 0.1), labelled=False),
        Node("b", 0.6, 0.7, exporters=0, labelled=False),
        Node("c", 0.1, 0.2, labelled=False),
    ],
    "nothing from one": [Node("a", 0.9, 0.8), Node("b", 0.6, 0.7, exporters=0, kubelet=False), Node("c", 0.1, 0.2)],
    "no kubelet metrics": [Node("a", 0.9, 0.8, kubelet=False), Node("b", 0.2, 0.7, kubelet=False)],
    "two exporters on one": [Node("a", 0.9, 0.8, (0.4, 0.2, 0.1), exporters=2), Node("b", 0.2, 0.7)],
    "control plane apart": [
        Node("a", 0.95, 0.9, roles=("control-plane",)),
        Node("b", 0.5, 0.5, roles=("worker",)),
        Node("c", 0.3, 0.4),
    ],
    "compact": [
        Node("a", 0.9, 0.5, roles=("master", "worker")),
        Node("b", 0.5, 0.5, roles=("master", "worker")),
        Node("c", 0.3, 0.4, roles=("master", "worker")),
    ],
    "control plane only": [Node("a", 0.9, 0.5, roles=("master",)), Node("b", 0.5, 0.5, roles=("master",))],
    "IPv6": [Node("a", 0.9, 0.8, address="fd00::1"), Node("b", 0.3, 0.2, address="fd00::2")],
    "addresses that begin alike": [Node("a", 0.9, address="10.0.0.1"), Node("b", 0.3, address="10.0.0.11")],
    "names with dots": [Node("a.example.com", 0.9), Node("b.example.com", 0.3)],
    "edges": [Node("a", 0.0, 0.0), Node("b", 1.0, 1.0, (1.0, 1.0, 1.0))],
    "single": [Node("a", 0.75, 0.75, (0.3, 0.3, 0.3))],
}
