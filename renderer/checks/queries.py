"""Queries of rebalance policies, with the cluster's own records in them as what they record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from renderer.checks.records import own, queries, reached
from renderer.decode import Decoded
from renderer.kinds import Policy
from renderer.kinds.base import Site
from renderer.kinds.recording_rules import RecordingRules
from renderer.model import Problem


def through_records(policies: Sequence[Decoded[Policy]], site: Site) -> Iterator[Problem]:
    """What a query gives, told where the query alone does not show it."""
    for _, query, at in queries(policies):
        from renderer import promql  # late, both: most fleets have no query
        from renderer.kinds import rebalance_query

        text = promql.unfolded(query.query, _records(policies))
        if text != query.query:
            yield from rebalance_query.through_records(query, text, at, site)


def unrecorded(policies: Sequence[Decoded[Policy]], site: Site) -> Iterator[Problem]:
    """Records of the catalogue and of the operator that own records cannot do without, and that nothing makes."""
    asked = [name for one in policies if isinstance(one.value, RecordingRules) for name in one.value.spec.catalog]
    for spec, query, at in queries(policies):
        from renderer import promql  # late, both: most fleets have no query
        from renderer.kinds import rebalance_query

        found = promql.parse(query.query)
        further = reached(found.needs, _needs(policies).get).keys() - found.metrics
        yield from rebalance_query.unrecorded(further, [*asked, *rebalance_query.groups(spec, site)], at, site)


def _needs(policies: Sequence[Decoded[Policy]]) -> Mapping[str, frozenset[str]]:
    """What each own record cannot do without."""
    from renderer import promql

    found: dict[str, frozenset[str]] = {}
    for rule, _ in own(policies):
        found[rule.name] = found.get(rule.name, frozenset()) | promql.parse(rule.expr).needs
    return found


def _records(policies: Sequence[Decoded[Policy]]) -> Mapping[str, str]:
    """The expression of each record that one rule alone makes, and that is no name of a label as well."""
    found: dict[str, list[str]] = {}
    for rule, _ in own(policies):
        found.setdefault(rule.name, []).append(rule.expr)
    return {name: exprs[0] for name, exprs in found.items() if len(exprs) == 1 and ":" in name}
