"""Queries that come down to the kernel's pressure metrics, on clusters where nothing turns these on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from renderer.decode import Decoded
from renderer.kinds import Policy
from renderer.kinds.base import Site
from renderer.kinds.rebalance import RebalancePolicy
from renderer.kinds.rebalance_spec import Query
from renderer.kinds.recording_rules import RecordingRules
from renderer.model import Problem
from renderer.releases.descheduler_operator import TABLE
from renderer.releases.operator_metrics import BY_PRESSURE, PRESSURE
from renderer.words import shown

_FALLS_BACK = re.compile(r"\bor\b")
_Records: TypeAlias = Mapping[str, Sequence[str]]
"""The expressions that record each name."""


def without_pressure(policies: Sequence[Decoded[Policy]], site: Site) -> Iterator[Problem]:
    """Named metrics, and operators that look for themselves, are told with the policy."""
    known = [TABLE[name] for name in site.descheduler.schemas] if site.platform == "openshift" else []
    for policy in policies:
        if not isinstance(policy.value, RebalancePolicy) or not isinstance(policy.value.spec.metric, Query):
            continue
        from renderer.kinds import rebalance_pressure, rebalance_surroundings  # late: most fleets have no query

        spec = policy.value.spec
        if any(schema.takes_metrics for schema in known) and not rebalance_pressure.checked(spec, known):
            read = _needs(policy.value.spec.metric.query, _records(policies, site), frozenset())
            at, found = policy.origin.below("spec", "utilization", "query"), rebalance_surroundings.find(spec, site)
            effect = f"the query reads {shown(read)}, which has no samples without them, and no node is balanced"
            yield from rebalance_pressure.missing(spec, found, site, at, effect) if read else ()


def _records(policies: Sequence[Decoded[Policy]], site: Site) -> _Records:
    """Those of the catalogue, and those of the cluster's own rules."""
    from renderer import catalog
    from renderer.kinds import rule_objects

    found: dict[str, list[str]] = {}
    for group in catalog.groups(catalog.CATALOG, rule_objects.source(site)).values():
        for record in group.rules:
            if record.record is not None:
                found.setdefault(record.record, []).append(record.expr)
    for policy in policies:
        if isinstance(policy.value, RecordingRules):
            for _, rule, _ in policy.value.rules(policy.origin):
                if rule.record is not None:
                    found.setdefault(rule.record, []).append(rule.expr)
    return found


def _needs(expr: str, records: _Records, seen: frozenset[str]) -> str:
    """A series that an expression reads and that has no samples without pressure metrics; empty where there is none.

    What has an `or` is taken to do without.
    """
    from renderer import promql

    names = () if _FALLS_BACK.search(expr) else sorted(promql.parse(expr).metrics - seen)
    for name in names:
        made_of = records.get(name, ())
        if (
            name.startswith(PRESSURE)
            or name in BY_PRESSURE
            or any(_needs(one, records, seen | {name}) for one in made_of)
        ):
            return name
    return ""
