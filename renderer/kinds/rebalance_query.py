"""A query of the policy's own: what is wrong with it, and the rules of the catalogue that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from renderer import catalog, documents, promql
from renderer.kinds import expressions, rule_objects
from renderer.kinds.base import Request, Site
from renderer.kinds.fields import shown
from renderer.kinds.rebalance_spec import Query, RebalanceSpec
from renderer.kinds.upstream_policy import RECORDS
from renderer.model import Origin, Problem
from renderer.releases.operator_metrics import METRICS

OURS, OPERATORS = "kubevirt_policy:", "descheduler:"
"""What our catalogue records under, and the descheduler operator."""
_NEAREST = {METRICS[name].query: record for name, record in RECORDS.items()} | {
    "descheduler:nodeutilization:cpu:avg1m": RECORDS["CPUUsage"]
}
"""What the operator records, and our record of the same."""


def check(query: Query, at: Origin) -> Iterator[Problem]:
    """What is wrong whatever the cluster; `at` is the query's place."""
    text = query.query.strip()
    if not text:
        yield Problem("policy/value", at, "utilization.query is empty", "Write a PromQL expression.")
        return
    yield from expressions.check(query.query, at, expressions.QUERY)
    if expressions.may_be_nan(query.query):
        message = "the query divides by what may be zero: the result is NaN then, and NaN passes for an idle node"
        help = "Write a / (b > 0), or end with >= 0: both drop the sample. clamp() does not."
        yield Problem("rebalance/query-nan", at, message, help)
    if _leaves_ratio(text):
        message = (
            "the query adds up rates and neither divides nor clamps them: one value above 1, of any node, "
            "ends the whole cycle and nothing is balanced"
        )
        help = "Divide by the capacity, or wrap it as in clamp(…, 0, 1)."
        yield Problem("rebalance/query-range", at, message, help)


def _leaves_ratio(query: str) -> bool:
    sums = any(word in query.replace(" ", "") for word in ("sum(", "sumby(", "sumwithout("))
    return (sums or "* 100" in query or "100 *" in query) and "/" not in query and "clamp" not in query


def judge(query: Query, at: Origin, site: Site) -> Iterator[Problem]:
    """What the cluster's Prometheus would make of it."""
    yield from expressions.judge(query.query, at, expressions.QUERY, site)
    records = _records(site)
    for name in sorted(promql.parse(query.query).metrics - records.keys()):
        ours = name.startswith(OURS)
        if not ours and not (name.startswith(OPERATORS) and site.platform == "kubernetes"):
            continue
        reason = "no group of the catalogue records" if ours else "only OpenShift's descheduler operator records"
        message = f"{reason} {shown(name)}: no node would have a load, and nothing would be balanced"
        place = documents.within(at, *promql.place(query.query, name))
        yield Problem("rebalance/unknown-record", place, message, f"The nearest there is: {_nearest(name, records)}.")


def _nearest(name: str, records: dict[str, str]) -> str:
    near = get_close_matches(name, records, 1, 0.9) or get_close_matches(name, RECORDS.values(), 1, 0)
    return _NEAREST.get(name, near[0])


def _records(site: Site) -> dict[str, str]:
    """Every record of the catalogue there, with its group."""
    found = catalog.groups(catalog.CATALOG, rule_objects.source(site))
    return {rule.record: name for name, group in found.items() for rule in group.rules if rule.record}


def groups(spec: RebalanceSpec, site: Site) -> list[str]:
    """The groups of the catalogue that record what the policy's own query reads; none with a named metric."""
    if not isinstance(spec.metric, Query):
        return []
    records = _records(site)
    return sorted({records[name] for name in promql.parse(spec.metric.query).metrics & records.keys()})


def rules(spec: RebalanceSpec, site: Site, policy: str) -> Iterator[Request]:
    """Those groups, as the cluster's Prometheus takes them."""
    if wanted := groups(spec, site):
        yield from rule_objects.check_namespace(site)
        yield from rule_objects.manifests(groups=wanted, site=site, policy=policy)
