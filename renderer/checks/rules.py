"""Recording rules of several policies on one cluster, and the policies that read what they record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TypeAlias

from renderer import documents
from renderer.checks.records import own, queries, reached, spread
from renderer.decode import Decoded
from renderer.kinds import Policy
from renderer.kinds.base import Site
from renderer.kinds.rebalance_spec import Query
from renderer.kinds.rule_spec import Rule
from renderer.model import Origin, Position, Problem
from renderer.releases.operator_metrics import AVERAGES
from renderer.words import shown

Placed: TypeAlias = tuple[Rule, Origin]
Records: TypeAlias = Mapping[str, Sequence[Placed]]
"""Own recording rules by the name that they record under."""
NODE = "instance"
"""The label by which the descheduler and the soft-tainter find the node of a sample
(sigs.k8s.io/descheduler v0.36.0 pkg/framework/plugins/nodeutilization/usageclients.go:282)."""
_COMPARED = 100
"""Rules of one name that another one is compared with."""
_KEEP = f"Keep it, as in avg by ({NODE}) (…)."


def across(policies: Sequence[Decoded[Policy]], site: Site) -> Iterator[Problem]:
    """Series that are recorded twice, and load that is recorded without its node."""
    records: dict[str, list[Placed]] = {}
    for rule, at in own(policies):
        records.setdefault(rule.name, []).append((rule, at))
    for placed in records.values():
        yield from _duplicates(placed)
    for _, query, at in queries(policies):
        yield from _lost(query, at, records, site)


def _duplicates(placed: Sequence[Placed]) -> Iterator[Problem]:
    """The last one would win, or either: Prometheus keeps one sample for each name, label set and time.

    Rules that ask for other values of a label, as for `code=~"2.."` and `code=~"5.."`, may share a name.
    """
    first: dict[frozenset[tuple[str, str]], list[Placed]] = {}
    for rule, at in placed:
        # Prometheus drops a label with an empty value.
        same = first.setdefault(frozenset(label for label in rule.labels.items() if label[1]), [])
        other = next((place for known, place in same[:_COMPARED] if not _apart(known.expr, rule.expr)), None)
        if other is not None:
            where = other.below("record").position
            labels = f" with the labels {', '.join(sorted(rule.labels))}" if rule.labels else ""
            message = f"{shown(rule.name)} is recorded twice{labels}, first at {where.place}"
            help = "Rename one of them, or tell them apart by a label: either sample could win."
            yield Problem("rules/duplicate", at.below("record"), message, help)
        same.append((rule, at))


def _apart(one: str, other: str) -> bool:
    """Whether two expressions ask for different values of some label."""
    first, second = _asked(one), _asked(other)
    return any(first[label].isdisjoint(second[label]) for label in first.keys() & second.keys())


@lru_cache(maxsize=1024)
def _asked(expr: str) -> dict[str, frozenset[str]]:
    from renderer import promql

    return promql.parse(expr).asked


def _lost(query: Query, at: Origin, records: Records, site: Site) -> Iterator[Problem]:
    """Where the label of the node is lost for sure: in the query, in what it reads, or in what that reads."""
    from renderer import promql

    found = promql.parse(query.query)
    if found.kind:  # no samples at all, which is told already
        return
    if found.loses(NODE):
        message = f"the query drops the label {NODE}, by which the load of a node is found"
        yield Problem("rules/lost-node", at, message, _KEEP)
        return
    reads = reached(found.metrics, lambda name: _read(records.get(name, ())))
    cluster_wide = _cluster_wide(site) | {name for name in reads if name.startswith(AVERAGES)}
    without = spread(cluster_wide, reads, lambda name, known: _lack(records.get(name, ()), known))
    if not found.loses(NODE, without):
        return
    for name in reads:
        if name in found.metrics & cluster_wide:
            message = f"{shown(name)} is one figure for all nodes, and the load of a node is found by the label {NODE}"
            place = documents.within(at, *promql.place(query.query, name))
            yield Problem("rules/lost-node", place, message, "Read a record that has one sample for each node.")
        for rule, place in records.get(name, ()) if name in without else ():
            yield from _culprit(rule, place, cluster_wide, at.position)


def _read(placed: Sequence[Placed]) -> AbstractSet[str]:
    from renderer import promql

    return frozenset().union(*(promql.parse(rule.expr).metrics for rule, _ in placed))


def _cluster_wide(site: Site) -> frozenset[str]:
    """The records of the catalogue without the label."""
    from renderer import catalog, promql
    from renderer.kinds import rule_objects

    groups = catalog.groups(catalog.CATALOG, rule_objects.source(site)).values()
    rules = [rule for group in groups for rule in group.rules if rule.record]
    return frozenset(rule.name for rule in rules if promql.parse(rule.expr).loses(NODE))


def _lack(placed: Sequence[Placed], without: AbstractSet[str]) -> bool:
    """Whether all rules of a record lose the label, with these names of series that do not have it."""
    return bool(placed) and all(_drops(rule, placed, without) for rule, _ in placed)


def _drops(rule: Rule, placed: Sequence[Placed], without: AbstractSet[str]) -> bool:
    """A label of the rule's own is the same for all nodes, unless there is a rule for each."""
    from renderer import promql

    if NODE in rule.labels:
        return not rule.labels[NODE] or len(placed) == 1
    return promql.parse(rule.expr).loses(NODE, without)


def _culprit(rule: Rule, place: Origin, cluster_wide: AbstractSet[str], reader: Position) -> Iterator[Problem]:
    """The rule where the label goes; none where a record that it reads lost it before."""
    from renderer import promql

    found = promql.parse(rule.expr)
    needed = f"and the rebalancing at {reader.place} finds the load of a node by it"
    if NODE in rule.labels:
        message = f"{shown(rule.name)} sets the label {NODE} to the same for all nodes, {needed}"
        yield Problem("rules/lost-node", place.below("labels", NODE), message, "Remove it, so that it stays as it is.")
    elif found.loses(NODE, cluster_wide):
        message = f"{shown(rule.name)} drops the label {NODE}, {needed}"
        start = documents.within(place.below("expr"), found.start, len(rule.expr[found.start :].partition("\n")[0]))
        yield Problem("rules/lost-node", start, message, _KEEP)
