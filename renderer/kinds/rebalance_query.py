"""A query of the policy's own: what is wrong with it, and the rules of the catalogue that it reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from renderer import catalog, documents, promql
from renderer.kinds import expressions, rebalance_records, rule_objects
from renderer.kinds.base import Request, Site
from renderer.kinds.rebalance_spec import Query, RebalanceSpec
from renderer.kinds.upstream_policy import RECORDS
from renderer.model import Origin, Problem
from renderer.releases.descheduler_operator import TABLE
from renderer.releases.operator_metrics import METRICS
from renderer.words import shown

OURS, OPERATORS = "kubevirt_policy:", "descheduler:"
"""What our catalogue records under, and the descheduler operator."""
_NOTHING = "no node would have a load, and nothing would be balanced"
_EXPORTER = re.compile(r"(?:instance:)?node_[^:]*$|instance:node_")
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
    for told in _values(query.query):
        yield Problem(told.code, documents.within(at, *told.span) if told.span else at, told.message, told.help)


@dataclass(frozen=True, slots=True)
class _Told:
    """What is wrong with what a query gives, and where in its text; nowhere where that is the whole."""

    code: str
    message: str
    help: str
    span: tuple[int, int] | None = None


def _values(text: str) -> Iterator[_Told]:
    """NaN, values that are no shares, and nodes without a value."""
    if expressions.may_be_nan(text):
        message = "the query divides by what may be zero: the result is NaN then, and NaN passes for an idle node"
        help = "Write a / (b > 0), or end with >= 0: both drop the sample. clamp() does not."
        yield _Told("rebalance/query-nan", message, help)
    if what := " and ".join(promql.parse(text).leaves_ratio):
        message = f"the query {what}: one value above 1, of any node, ends the whole cycle and nothing is balanced"
        yield _Told("rebalance/query-range", message, "Divide by the capacity, or wrap it as in clamp(…, 0, 1).")
    for part in promql.parse(text).drops(("instance", "node")):
        message = f"the query drops nodes by {part}: one node without a sample ends the cycle for all of them"
        help = "Let it give every node a value, as in clamp(…, 0, 1), or b > bool 0.5."
        yield _Told("rebalance/query-drops", message, help, _dropping(text, part))


def through_records(query: Query, text: str, at: Origin, site: Site) -> Iterator[Problem]:
    """What is wrong with a query where its records stand in it as what they record, and not without; that is `text`."""
    known = {told.code for told in (*_values(query.query), *_node_names(query.query, site))}
    for told in (*_values(text), *_node_names(text, site)):
        if told.code not in known:
            yield Problem(told.code, at, f"with what its records read, {told.message}", told.help)
            known.add(told.code)


def _dropping(text: str, part: str) -> tuple[int, int]:
    """The operator, function or matched value that drops series."""
    start, length = promql.place(text, part.partition("(")[0].partition(" ")[0].partition('="')[0])
    return start, length


def judge(query: Query, at: Origin, site: Site) -> Iterator[Problem]:
    """What the cluster's Prometheus would make of it."""
    yield from expressions.judge(query.query, at, expressions.QUERY, site)
    for told in _node_names(query.query, site):
        yield Problem(told.code, documents.within(at, *told.span) if told.span else at, told.message, told.help)
    records = _records(site)
    for name in sorted(promql.parse(query.query).metrics - records.keys()):
        ours = name.startswith(OURS)
        if not ours and not (name.startswith(OPERATORS) and site.platform == "kubernetes"):
            continue
        reason = "no group of the catalogue records" if ours else "only OpenShift's descheduler operator records"
        message = f"{reason} {shown(name)}: {_NOTHING}"
        place = documents.within(at, *promql.place(query.query, name))
        yield Problem("rebalance/unknown-record", place, message, f"The nearest there is: {_nearest(name, records)}.")


def unrecorded(names: Iterable[str], asked: Iterable[str], at: Origin, site: Site) -> Iterator[Problem]:
    """Those of the names that nothing records there, where the groups that are asked for are rendered."""
    records, present = _records(site), catalog.groups(asked, rule_objects.source(site)).keys()
    for name in sorted(names):
        if name.startswith(OPERATORS) and site.platform == "openshift":
            known = [TABLE[schema] for schema in site.descheduler.schemas]
            yield from rebalance_records.judge(Query(query=name), known, at)
        elif name.startswith(OPERATORS) or (name.startswith(OURS) and name not in records):
            message = f"a record that the query reads goes by {shown(name)}, which nothing records: {_NOTHING}"
            yield Problem("rebalance/unknown-record", at, message, f"The nearest there is: {_nearest(name, records)}.")
        elif name in records and records[name] not in present:
            message = f"a record that the query reads goes by {shown(name)}, which nothing records there: {_NOTHING}"
            help = f"Name {records[name]} under catalog in a RecordingRules policy of these clusters."
            yield Problem("rebalance/unknown-record", at, message, help)


def _node_names(text: str, site: Site) -> Iterator[_Told]:
    """Series of node-exporter, and of the rules that come with it, whose names begin with `instance:node_`."""
    read = sorted(name for name in promql.parse(text).origins("instance") if _EXPORTER.match(name))
    if site.monitoring.node_names == "address" and read:
        message = (
            f"instance of {shown(read[0])} is address:port there (monitoring.nodeNames: address), and the "
            "descheduler looks for the node's name: no node would have a load"
        )
        help = (
            "Read a record of the catalogue, as in kubevirt_policy:node_cpu_utilization:ratio, or take the name over "
            "with group_left and label_replace; nodeNames: name where your Prometheus relabels it."
        )
        yield _Told("rebalance/node-names", message, help, promql.place(text, read[0]))


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
