"""Queries that come down to the kernel's pressure metrics, on clusters where nothing turns these on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from renderer.checks.records import own, queries, reached, spread
from renderer.decode import Decoded
from renderer.kinds import Policy
from renderer.kinds.base import Site
from renderer.model import Problem
from renderer.releases.descheduler_operator import TABLE
from renderer.releases.operator_metrics import BY_PRESSURE, PRESSURE
from renderer.words import shown

_Records: TypeAlias = Mapping[str, Sequence[str]]
"""The expressions that record each name."""


def without_pressure(policies: Sequence[Decoded[Policy]], site: Site) -> Iterator[Problem]:
    """Named metrics, and operators that look for themselves, are told with the policy."""
    known = [TABLE[name] for name in site.descheduler.schemas] if site.platform == "openshift" else []
    for spec, query, at in queries(policies):
        from renderer.kinds import rebalance_pressure, rebalance_surroundings  # late: most fleets have no query

        if any(schema.takes_metrics for schema in known) and not rebalance_pressure.checked(spec, known):
            read, found = _needed(query.query, _records(policies, site)), rebalance_surroundings.find(spec, site)
            effect = f"the query reads {shown(read)}, which has no samples without them, and no node is balanced"
            yield from rebalance_pressure.missing(spec, found, site, at, effect) if read else ()


def _records(policies: Sequence[Decoded[Policy]], site: Site) -> _Records:
    """Those of the catalogue, and those of the cluster's own rules."""
    from renderer import catalog
    from renderer.kinds import rule_objects

    found: dict[str, list[str]] = {}
    for group in catalog.groups(catalog.CATALOG, rule_objects.source(site)).values():
        for record in group.rules:
            if record.record:
                found.setdefault(record.record, []).append(record.expr)
    for rule, _ in own(policies):
        found.setdefault(rule.name, []).append(rule.expr)
    return found


def _needed(query: str, records: _Records) -> str:
    """A series that the query cannot do without, and that has no samples without pressure metrics; empty for none."""
    from renderer import promql

    def needs(name: str) -> frozenset[str]:
        return frozenset().union(*(promql.parse(expr).needs for expr in records.get(name, ())))

    wanted = promql.parse(query).needs
    reads = reached(wanted, needs)
    pressure = {name for name in reads if name.startswith(PRESSURE) or name in BY_PRESSURE}
    lacking = spread(pressure, reads, lambda name, known: not known.isdisjoint(reads[name]))
    return min(wanted & lacking, default="")
