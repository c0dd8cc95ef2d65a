"""Queries of rebalance policies, with the cluster's own records in them as what they record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from renderer.checks.records import own
from renderer.decode import Decoded
from renderer.kinds import Policy
from renderer.kinds.base import Site
from renderer.kinds.rebalance import RebalancePolicy
from renderer.kinds.rebalance_spec import Query
from renderer.model import Problem

_DEPTH = 8
"""How many records deep a query is followed."""
_LONGEST = 20_000
"""Characters of a query with its records in it."""
_NARROWED = ("{", "[", "offset", "@")


def through_records(policies: Sequence[Decoded[Policy]], site: Site) -> Iterator[Problem]:
    """What a query gives, told where the query alone does not show it."""
    for policy in policies:
        if isinstance(policy.value, RebalancePolicy) and isinstance(policy.value.spec.metric, Query):
            from renderer.kinds import rebalance_query  # late: most fleets have no query

            query, at = policy.value.spec.metric, policy.origin.below("spec", "utilization", "query")
            text = _unfolded(query.query, _records(policies))
            if text != query.query:
                yield from rebalance_query.through_records(query, text, at, site)


def _records(policies: Sequence[Decoded[Policy]]) -> Mapping[str, str]:
    """The expression of each record that one rule alone makes, and that is no name of a label as well."""
    found: dict[str, list[str]] = {}
    for rule, _ in own(policies):
        found.setdefault(rule.name, []).append(rule.expr)
    return {name: exprs[0] for name, exprs in found.items() if len(exprs) == 1 and ":" in name}


def _unfolded(text: str, records: Mapping[str, str]) -> str:
    """The query with each record that it reads as it is replaced by its expression, in brackets."""
    from renderer import promql

    for _ in range(_DEPTH):
        found = list(promql.tokens(text))
        after = [*(token.text.lower() for token in found[1:]), ""]
        for token, behind in reversed(list(zip(found, after, strict=True))):
            if token.text in records and behind not in _NARROWED and len(text) < _LONGEST:
                text = f"{text[: token.start]}({records[token.text]}\n){text[token.end :]}"
        if [token.text for token in promql.tokens(text)] == [token.text for token in found]:
            break
    return text
