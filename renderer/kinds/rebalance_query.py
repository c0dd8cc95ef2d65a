"""A query of the policy's own: what is wrong with it, and the rules of the catalogue that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from renderer import catalog, documents, promql
from renderer.kinds import expressions, rule_objects
from renderer.kinds.base import Request, Site
from renderer.kinds.rebalance_spec import Query, RebalanceSpec
from renderer.kinds.upstream_policy import RECORDS
from renderer.model import Origin, Problem
from renderer.releases.operator_metrics import METRICS
from renderer.words import shown

OURS, OPERATORS = "kubevirt_policy:", "descheduler:"
"""What our catalogue records under, and the descheduler operator."""
_NEAREST = {METRICS[name].query: record for name, record in RECORDS.items()} | {
    "descheduler:nodeutilization:cpu:avg1m": RECORDS["CPUUsage"]
}
"""What the operator records, and our record of the same."""


def check(query: Query, at: Origin) -> Iterator[Problem]:
    """What is wrong whatever the cluster; `at` is the query's place."""
    if not query.query.strip():
        yield Problem("policy/value", at, "utilization.query is empty", "Write a PromQL expression.")
        return
    yield from expressions.check(query.query, at, expressions.QUERY)
    if expressions.may_be_nan(query.query):
        message = "the query divides by what may be zero: the result is NaN then, and NaN passes for an idle node"
        help = "Write a / (b > 0), or end with >= 0: both drop the sample. clamp() does not."
        yield Problem("rebalance/query-nan", at, message, help)
    if what := " and ".join(promql.parse(query.query).leaves_ratio):
        message = f"the query {what}: one value above 1, of any node, ends the whole cycle and nothing is balanced"
        help = "Divide by the capacity, or wrap it as in clamp(…, 0, 1)."
        yield Problem("rebalance/query-range", at, message, help)
    yield from _check_drops(query, at)


def _check_drops(query: Query, at: Origin) -> Iterator[Problem]:
    for part in promql.parse(query.query).drops(("instance", "node")):
        message = f"the query drops nodes by {part}: one node without a sample ends the cycle for all of them"
        place = documents.within(at, *_dropping(query.query, part))
        help = "Let it give every node a value, as in clamp(…, 0, 1), or b > bool 0.5."
        yield Problem("rebalance/query-drops", place, message, help)


def _dropping(text: str, part: str) -> tuple[int, int]:
    """The operator, function or matched value that drops series."""
    start, length = promql.place(text, part.partition("(")[0].partition(" ")[0].partition('="')[0])
    return start, length


def judge(query: Query, at: Origin, site: Site) -> Iterator[Problem]:
    """What the cluster's Prometheus would make of it."""
    yield from expressions.judge(query.query, at, expressions.QUERY, site)
    yield from _check_node_names(query, at, site)
    records = _records(site)
    for name in sorted(promql.parse(query.query).metrics - records.keys()):
        ours = name.startswith(OURS)
        if not ours and not (name.startswith(OPERATORS) and site.platform == "kubernetes"):
            continue
        reason = "no group of the catalogue records" if ours else "only OpenShift's descheduler operator records"
        message = f"{reason} {shown(name)}: no node would have a load, and nothing would be balanced"
        place = documents.within(at, *promql.place(query.query, name))
        yield Problem("rebalance/unknown-record", place, message, f"The nearest there is: {_nearest(name, records)}.")


def _check_node_names(query: Query, at: Origin, site: Site) -> Iterator[Problem]:
    """Node-exporter's series have no colon in their names, those that rules record have one."""
    raw = [name for name in promql.parse(query.query).origins("instance") if name.startswith("node_")]
    exporter = sorted(name for name in raw if ":" not in name)
    if site.monitoring.node_names == "address" and exporter:
        message = (
            f"instance of {shown(exporter[0])} is address:port there (monitoring.nodeNames: address), and the "
            "descheduler looks for the node's name: no node would have a load"
        )
        help = (
            "Read a record of the catalogue, as in kubevirt_policy:node_cpu_utilization:ratio, or take the name over "
            "with group_left and label_replace; nodeNames: name where your Prometheus relabels it."
        )
        place = documents.within(at, *promql.place(query.query, exporter[0]))
        yield Problem("rebalance/node-names", place, message, help)


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
    yield from rule_objects.requests(groups=groups(spec, site), site=site, policy=policy)
