"""Which nodes are under-utilized, appropriately utilized or over-utilized: as the descheduler sees it, in integers.

The rules are those of the descheduler's LowNodeUtilization plugin (v0.36.0 pkg/framework/plugins/nodeutilization:
usageclients.go:286, nodeutilization.go:491, lownodeutilization.go:281).  It computes averages in floating point and
in random order; here they are exact, so that the same samples always give the same classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

FULL = 100
"""Utilization in points: a sample of 1."""

_INEXACT = frozenset({7, 14, 28, 29, 55, 56, 57, 58})
"""Percentages that floating point takes for slightly more or less than they are."""


class Usage(IntEnum):
    """The class of a node; its value is how many soft taints it has."""

    UNDER = 0
    APPROPRIATE = 1
    OVER = 2


@dataclass(frozen=True, slots=True)
class Thresholds:
    """`low` and `high` in points: of the scale, or with `deviation` below and above the average of the nodes."""

    low: int
    high: int
    deviation: bool


@dataclass(frozen=True, slots=True)
class Node:
    """A node with its utilization in whole points, and whether it is cordoned."""

    name: str
    percent: int
    unschedulable: bool = False


class SampleError(ValueError):
    """A sample that cannot be used, or none for a node that needs one."""


def percent(sample: float) -> int:
    """A sample of 0…1 in whole points, cut off, not rounded.  Raises `SampleError` outside, and for NaN.

    0.29 is 28: the product's arithmetic, kept so that both see the same number.
    """
    if not 0 <= sample <= 1:
        raise SampleError(f"{sample} is not within 0…1")
    return int(sample * FULL)


def measure(names: Iterable[str], samples: Mapping[str, float]) -> dict[str, int]:
    """The utilization of each node; series of other nodes are left out.

    Raises `SampleError` where the descheduler would stop its cycle: for a node without a sample, or a value that is
    no ratio, be it of an unlisted node.
    """
    found = {name: percent(sample) for name, sample in samples.items()}
    wanted = list(names)
    for name in wanted:
        if name not in found:
            raise SampleError(f"there is no sample for node {name}")
    return {name: found[name] for name in wanted}


def classify(nodes: Iterable[Node], thresholds: Thresholds) -> dict[str, Usage]:
    """The class of each node: under-utilized up to the lower bound unless cordoned, over-utilized above the upper."""
    listed = list(nodes)
    low, high = bounds(listed, thresholds)
    return {node.name: _class(node, len(listed), low, high) for node in listed}


def taints(classes: Mapping[str, Usage]) -> dict[str, int]:
    """How many soft taints each node is to have: where no node is under-utilized, the appropriate ones have none."""
    settled = Usage.UNDER if Usage.UNDER not in classes.values() else Usage.APPROPRIATE
    return {name: int(settled if usage is Usage.APPROPRIATE else usage) for name, usage in classes.items()}


def ambiguous(nodes: Iterable[Node], thresholds: Thresholds) -> list[str]:
    """Nodes exactly on a bound of a deviation that floating point can put on either side of it."""
    listed = list(nodes)
    if not thresholds.deviation or not any(node.percent in _INEXACT for node in listed):
        return []
    on = bounds(listed, thresholds)
    return [node.name for node in listed if node.percent * len(listed) in on]


def bounds(nodes: Sequence[Node], thresholds: Thresholds) -> tuple[int, int]:
    """Both bounds times the number of nodes, so that the average needs no division; held within 0…100."""
    count = len(nodes)
    average = sum(node.percent for node in nodes)
    if not thresholds.deviation:
        return count * thresholds.low, count * thresholds.high
    return max(average - count * thresholds.low, 0), min(average + count * thresholds.high, count * FULL)


def _class(node: Node, count: int, low: int, high: int) -> Usage:
    if node.percent * count <= low and not node.unschedulable:
        return Usage.UNDER
    return Usage.OVER if node.percent * count > high else Usage.APPROPRIATE
