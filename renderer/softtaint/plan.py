"""Which taints each node is to have: nodes, samples and configuration in, one choice a node out.  Pure, in integers.

The classes are the descheduler's (`classify`).  What is added to them is memory, and it stands in the taints on the
nodes themselves: a taint comes and goes at points that are a band apart.  Applying a plan and planning again with the
same samples changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from renderer.softtaint import classify, taints
from renderer.softtaint.classify import Usage
from renderer.softtaint.config import Config
from renderer.softtaint.nodes import Node
from renderer.softtaint.taints import APPROPRIATE, LEVELS, OVERUTILIZED, Taint
from renderer.values import Value


class Reason(StrEnum):
    """Why a node has the taints that it is to have."""

    UNDER = "under-utilized"
    APPROPRIATE = "appropriately utilized"
    BAND = "between two points of the band: as it was"
    OVER = "over-utilized"
    HELD = "over-utilized until it falls by the band"
    SHARE = "over-utilized, but beyond the share that may be tainted"
    BARRED = "over-utilized, but somebody else's taint stands in the way"
    SETTLED = "no node that pods can go to is under-utilized"
    KEPT = "not judged: as it was"
    CLEANED = "not judged: cleaned"
    OUTSIDE = "outside the selector"
    SINGLE = "the only node"
    MARKED = "about to be deleted: left alone"
    CLEANING = "all taints are removed"


class Choice(Value, frozen=True):
    """A node with its number of taints to be, None to leave it as it is, and its utilization in points if judged."""

    node: Node
    level: int | None
    reason: Reason
    points: int | None = None

    @property
    def wanted(self) -> list[Taint] | None:
        """The list of taints that it should have, None where that is what it has."""
        return changed(self.node, self.level)


class Plan(Value, frozen=True):
    """One choice for each node, in the order of their names, and the bounds in points that judged nodes were held to.

    `scope` counts the nodes that match the selector, `judged` those of them with a class; `limit` is how many of the
    nodes may have the over-utilized taint.
    """

    choices: list[Choice]
    scope: int
    judged: int = 0
    limit: int = 0
    low: float | None = None
    high: float | None = None


class _Load(Value, frozen=True):
    """A judged node: its class, and its utilization times the number of judged nodes."""

    node: Node
    points: int
    load: int
    usage: Usage


class _Scale(Value, frozen=True):
    """Both bounds and the band, times the number of judged nodes."""

    low: int
    high: int
    band: int

    def near(self, one: _Load) -> bool:
        """Not yet so far above the lower bound that it gets its first taint."""
        return not one.node.cordoned and one.load <= self.low + self.band

    def over(self, one: _Load) -> bool:
        """Where both bounds are closer than the band, a node without taints waits for the band as well."""
        held = OVERUTILIZED in one.node.keys and one.load > self.high - self.band
        above = one.load > self.high and (bool(one.node.keys) or not self.near(one))
        return one.usage is not Usage.UNDER and (held or above)

    def appropriate(self, one: _Load) -> bool:
        if one.usage is Usage.UNDER:
            return False
        return not self.near(one) or APPROPRIATE in one.node.keys

    def rank(self, one: _Load) -> tuple[int, bool, str]:
        """Worst first.  One that has the taint counts as worse by the band: else two of a kind would swap it."""
        has = OVERUTILIZED in one.node.keys
        return -one.load - self.band * has, not has, one.node.name


def plan(nodes: Sequence[Node], points: Mapping[str, int], config: Config) -> Plan:
    """What every node is to have.  `points` are the utilizations of nodes with a valid sample, by name."""
    scope = [node for node in nodes if node.in_scope]
    outside = [Choice(node, 0, Reason.OUTSIDE) for node in nodes if not node.in_scope]
    if len(scope) < 2:
        return Plan(_sorted(outside + [Choice(node, 0, Reason.SINGLE) for node in scope]), len(scope))
    judged = [node for node in scope if node.ready and node.name in points]
    limit = min(len(scope) * config.max_tainted_percent // classify.FULL, len(scope) - 1)
    left = limit - sum(node.marked and OVERUTILIZED in node.keys for node in scope)
    names = {node.name for node in judged}
    others, left = _others([node for node in scope if node.name not in names], left, config)
    loads, scale = _measure(judged, points, config)
    choices = _sorted(outside + others + _judge(loads, scale, left))
    count = len(judged)
    bounds = (scale.low / count, scale.high / count) if count else (None, None)
    return Plan(choices, len(scope), count, limit, *bounds)


def cleaning(nodes: Sequence[Node]) -> Plan:
    """All our taints removed."""
    choices = [Choice(node, 0, Reason.CLEANING) for node in nodes]
    return Plan(_sorted(choices), sum(node.in_scope for node in nodes))


def changed(node: Node, level: int | None) -> list[Taint] | None:
    """The list of taints of a node at a level, None where that is what it has."""
    if level is None:
        return None
    wanted = taints.settled(node.taints, LEVELS[level])
    return None if wanted == (node.taints or []) else wanted


def _sorted(choices: list[Choice]) -> list[Choice]:
    """In the order of names; whatever else was said, nodes that are about to be deleted are left alone."""
    found = [Choice(one.node, None, Reason.MARKED, one.points) if one.node.marked else one for one in choices]
    return sorted(found, key=lambda one: one.node.name)


def _others(nodes: list[Node], left: int, config: Config) -> tuple[list[Choice], int]:
    """Nodes that cannot be judged.  Those that keep the over-utilized taint use up the share before all others."""
    if config.missing_sample == "Remove":
        return [Choice(node, 0, Reason.CLEANED) for node in nodes], left
    choices = []
    for node in sorted(nodes, key=lambda node: node.name):
        if OVERUTILIZED not in node.keys or node.marked:
            choices.append(Choice(node, None, Reason.KEPT))
        elif left > 0:
            choices.append(Choice(node, None, Reason.KEPT))
            left -= 1
        else:
            choices.append(Choice(node, int(APPROPRIATE in node.keys), Reason.SHARE))
    return choices, left


def _measure(judged: list[Node], points: Mapping[str, int], config: Config) -> tuple[list[_Load], _Scale]:
    listed = [classify.Node(node.name, points[node.name], node.cordoned) for node in judged]
    classes = classify.classify(listed, config.bounds)
    low, high = classify.bounds(listed, config.bounds)
    count = len(judged)
    loads = [_Load(node, points[node.name], points[node.name] * count, classes[node.name]) for node in judged]
    return loads, _Scale(low, high, count * config.hysteresis_points)


def _judge(loads: list[_Load], scale: _Scale, left: int) -> list[Choice]:
    writable = [one for one in loads if not one.node.marked]
    feasible = [one for one in writable if one.node.feasible]
    # Where all nodes are reserved by hard taints, the pods in question tolerate them.
    destinations = feasible or [one for one in writable if not one.node.cordoned]
    over = [one for one in writable if scale.over(one) and not _barred(one)]
    chosen = _chosen(over, destinations, scale, left)
    graded = _graded(writable, destinations, scale)
    return [_choice(one, scale, chosen=one.node.name in chosen, graded=graded) for one in loads]


def _barred(one: _Load) -> bool:
    return OVERUTILIZED in taints.taken(one.node.taints)


def _chosen(over: list[_Load], destinations: list[_Load], scale: _Scale, left: int) -> set[str]:
    """Who gets the over-utilized taint: the worst, within the share, and never all that pods can go to.

    Taints that are on all of those alike change nothing for the scheduler.
    """
    spare = len(destinations) - 1
    names = {one.node.name for one in destinations}
    chosen: set[str] = set()
    for one in sorted(over, key=scale.rank):
        if len(chosen) >= left:
            break
        if one.node.name not in names:
            chosen.add(one.node.name)
        elif spare > 0:
            chosen.add(one.node.name)
            spare -= 1
    return chosen


def _graded(writable: list[_Load], destinations: list[_Load], scale: _Scale) -> bool:
    """Whether appropriate nodes have a taint: only while pods can go to an under-utilized one.

    Once they have it, they keep it until no destination without taints is within the band of being one: else all of
    them would change whenever the last under-utilized node comes and goes.
    """
    if any(one.usage is Usage.UNDER for one in destinations):
        return True
    before = any(one.node.keys == LEVELS[Usage.APPROPRIATE] for one in writable)
    return before and any(not one.node.keys and scale.near(one) for one in destinations)


def _choice(one: _Load, scale: _Scale, *, chosen: bool, graded: bool) -> Choice:
    if chosen:
        held = one.usage is not Usage.OVER
        return Choice(one.node, int(Usage.OVER), Reason.HELD if held else Reason.OVER, one.points)
    level = int(graded)
    if scale.over(one):
        return Choice(one.node, level, Reason.BARRED if _barred(one) else Reason.SHARE, one.points)
    if scale.appropriate(one):
        return Choice(one.node, level, Reason.APPROPRIATE if graded else Reason.SETTLED, one.points)
    return Choice(one.node, 0, Reason.UNDER if one.usage is Usage.UNDER else Reason.BAND, one.points)
