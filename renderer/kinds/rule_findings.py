"""What is wrong with a single rule: whatever the cluster, and on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from renderer import documents, promql
from renderer.kinds import expressions, templates
from renderer.kinds.base import Site
from renderer.kinds.rule_spec import Rule
from renderer.model import Origin, Problem
from renderer.releases import prometheus
from renderer.releases.platform_records import OPENSHIFT
from renderer.values import replace
from renderer.words import did_you_mean, shown

_RESERVED = {
    "descheduler:": "the descheduler operator records under that name, and rewrites its rules",
    "kubevirt_policy:": "the catalogue records under that name",
}
_RENAME = "Choose a prefix of your own, as in team:node_load:rate5m."
_FUNCTIONS = "Write .Labels, .Value or one of Prometheus's functions."


def check(rule: Rule, at: Origin) -> Iterator[Problem]:
    """What no Prometheus takes, or what nobody would want."""
    if (rule.record is None) == (rule.alert is None):
        both = rule.record is not None
        message = "record and alert exclude each other" if both else "one of record and alert is missing"
        place = at.below("alert") if both else at
        yield Problem("policy/value" if both else "policy/missing-key", place, message, "Give exactly one of them.")
    if rule.record is not None:
        yield from _check_record(rule, at)
    yield from _named(rule, expressions.check(rule.expr, at.below("expr"), expressions.RULE))
    yield from _check_constant(rule, at.below("expr"))
    for field in ("labels", "annotations"):
        for key, text in getattr(rule, field).items():
            if rule.alert is not None:
                yield from _check_template(text, at.below(field, key))


def _named(rule: Rule, problems: Iterator[Problem]) -> Iterator[Problem]:
    """With the name of the record or alert: a line may be far below it."""
    for problem in problems:
        kind = "record" if rule.record is not None else "alert"
        yield replace(problem, message=f"{kind} {shown(rule.name)}: {problem.message}") if rule.name else problem


def _check_constant(rule: Rule, at: Origin) -> Iterator[Problem]:
    """`vector(1)` says that it is meant, as for an alert that shows that alerts arrive."""
    if rule.alert is not None and promql.parse(rule.expr).constant:
        message = f"alert {shown(rule.alert)}: the expression reads no series, so the alert fires always, or never"
        help = "Write a condition on series. Where it is to fire always, write vector(1)."
        yield Problem("rules/no-series", at, message, help)


def _check_record(rule: Rule, at: Origin) -> Iterator[Problem]:
    name = rule.record or ""
    for prefix, reason in _RESERVED.items():
        if name.startswith(prefix):
            yield Problem("rules/reserved-name", at.below("record"), f"{shown(name)}: {reason}", _RENAME)
    if ":" not in name:
        message = f"{shown(name)} looks like a metric of an exporter: recorded series have a colon in their name"
        yield Problem("rules/record-name", at.below("record"), message, "Name it level:metric:operation.")
    given = {"for": rule.for_, "keep_firing_for": rule.keep_firing_for, "annotations": rule.annotations}
    for field, value in given.items():
        if value:
            message = f"{field} belongs to an alert: Prometheus refuses a record with it"
            yield Problem("rules/record-field", at.below(field), message, f"Remove {field}.")


def _check_template(text: str, at: Origin) -> Iterator[Problem]:
    """Unknown functions, and what is no template: Prometheus would refuse the file."""
    for name, offset in islice(templates.functions(text).items(), templates.MOST):
        if name not in prometheus.TEMPLATE_FUNCTIONS:
            message = f"templates of alerts have no function {shown(name)}"
            help = did_you_mean(name, prometheus.TEMPLATE_FUNCTIONS) or _FUNCTIONS
            yield Problem("rules/template", documents.within(at, offset, len(name)), message, help)
    for fault in templates.faults(text):
        place = documents.within(at, fault.offset, fault.length)
        yield Problem("rules/template", place, fault.message, fault.help)


def _judge_template(text: str, at: Origin, site: Site) -> Iterator[Problem]:
    for name, offset in templates.functions(text).items():
        since = prometheus.TEMPLATES_SINCE.get(name, (2, 0))
        if any(version.release < since for version in site.prometheus):
            message = f"templates of Prometheus before {prometheus.written(since)} have no function {name}"
            help = "Do without it there, or correct versions.prometheus."
            yield Problem("rules/template", documents.within(at, offset, len(name)), message, help)


def judge(rule: Rule, interval: str | None, at: Origin, site: Site) -> Iterator[Problem]:
    """What the cluster's Prometheus does not know, and windows that are too short for its scrapes."""
    yield from _named(rule, expressions.judge(rule.expr, at.below("expr"), expressions.RULE, site, interval))
    if site.platform == "openshift" and rule.record in OPENSHIFT:
        message = f"{shown(rule.record)}: OpenShift's own monitoring records that series, which would get two sources"
        yield Problem("rules/reserved-name", at.below("record"), message, _RENAME)
    if rule.keep_firing_for and site.prometheus:
        since = prometheus.KEEP_FIRING_FOR
        if site.prometheus[0].release < since:
            message = (
                f"Prometheus before {prometheus.written(since)} does not know keep_firing_for and refuses the file"
            )
            help = "Remove it there, or correct versions.prometheus."
            yield Problem("rules/unsupported", at.below("keep_firing_for"), message, help)
    for field in ("labels", "annotations") if rule.alert is not None and site.prometheus else ():
        for key, text in getattr(rule, field).items():
            yield from _judge_template(text, at.below(field, key), site)
