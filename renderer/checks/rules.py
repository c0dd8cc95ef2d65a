"""Recording rules of several policies on one cluster, and the policies that read what they record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from renderer import documents
from renderer.decode import Decoded
from renderer.kinds import Policy
from renderer.kinds.base import Site
from renderer.kinds.fields import shown
from renderer.kinds.rebalance import RebalancePolicy
from renderer.kinds.rebalance_spec import Query
from renderer.kinds.recording_rules import RecordingRules
from renderer.kinds.rule_spec import Rule
from renderer.model import Origin, Problem

Placed = tuple[Rule, Origin]
NODE = "instance"
"""The label by which the descheduler and the soft-tainter find the node of a sample
(sigs.k8s.io/descheduler v0.36.0 pkg/framework/plugins/nodeutilization/usageclients.go:282)."""


def across(policies: Sequence[Decoded[Policy]], site: Site) -> Iterator[Problem]:
    """Series that are recorded twice, and load that is recorded without its node."""
    del site
    placed = [
        (rule, at)
        for policy in policies
        if isinstance(policy.value, RecordingRules)
        for _, rule, at in policy.value.rules(policy.origin)
        if rule.record is not None
    ]
    yield from _duplicates(placed)
    records: dict[str, list[Placed]] = {}
    for rule, at in placed:
        records.setdefault(rule.name, []).append((rule, at))
    for policy in policies:
        if isinstance(policy.value, RebalancePolicy) and isinstance(policy.value.spec.metric, Query):
            yield from _lost(policy.value.spec.metric, policy.origin.below("spec", "utilization", "query"), records)


def _duplicates(placed: Sequence[Placed]) -> Iterator[Problem]:
    """The last one would win, or either: Prometheus keeps one sample for each name, label set and time."""
    first: dict[tuple[str, frozenset[tuple[str, str]]], Origin] = {}
    for rule, at in placed:
        # Prometheus drops a label with an empty value.
        key = (rule.name, frozenset(label for label in rule.labels.items() if label[1]))
        if key in first:
            place = first[key].position
            labels = f" with the labels {', '.join(sorted(rule.labels))}" if rule.labels else ""
            message = f"{shown(rule.name)} is recorded twice{labels}, first at {place.file}:{place.line}"
            help = "Rename one of them, or tell them apart by a label: either sample could win."
            yield Problem("rules/duplicate", at.below("record"), message, help)
        first.setdefault(key, at.below("record"))


def _lost(query: Query, at: Origin, records: Mapping[str, Sequence[Placed]]) -> Iterator[Problem]:
    from renderer import promql

    found = promql.parse(query.query)
    if found.loses(NODE):
        message = f"the query drops the label {NODE}, by which the load of a node is found"
        yield Problem("rules/lost-node", at, message, f"Keep it, as in avg by ({NODE}) (…).")
        return
    for name in sorted(found.metrics & records.keys()):
        for rule, place in records[name]:
            if NODE not in rule.labels and promql.parse(rule.expr).loses(NODE):
                where = at.position
                message = (
                    f"{shown(name)} drops the label {NODE}, and the rebalancing at {where.file}:{where.line} "
                    "finds the load of a node by it"
                )
                expr = rule.expr.lstrip()
                start = documents.within(place.below("expr"), len(rule.expr) - len(expr), len(expr.partition("\n")[0]))
                yield Problem("rules/lost-node", start, message, f"Keep it, as in avg by ({NODE}) (…).")
