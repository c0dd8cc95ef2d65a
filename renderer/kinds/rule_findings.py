"""What is wrong with a single rule: whatever the cluster, and on a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator

from renderer import documents, promql
from renderer.kinds import templates
from renderer.kinds.base import Site
from renderer.kinds.fields import prometheus_seconds, shown
from renderer.kinds.rule_spec import Rule
from renderer.model import Origin, Problem
from renderer.promql import Window
from renderer.releases import prometheus
from renderer.releases.versions import Version

_RESERVED = {
    "descheduler:": "the descheduler operator records under that name, and rewrites its rules",
    "kubevirt_policy:": "the catalogue records under that name",
}
_RATES = frozenset(("rate", "increase", "irate", "delta", "idelta", "deriv", "predict_linear", "changes", "resets"))
_SCRAPES_NEEDED, _SCRAPES_WANTED = 2, 4
_WORD = re.compile(r"(?<![\w.$])[A-Za-z_]\w*")
_KEYWORDS = frozenset(
    ("if", "else", "end", "range", "with", "define", "template", "block", "break", "continue", "nil", "true", "false")
)


def check(rule: Rule, at: Origin) -> Iterator[Problem]:
    """What no Prometheus takes, or what nobody would want."""
    if (rule.record is None) == (rule.alert is None):
        both = rule.record is not None
        message = "record and alert exclude each other" if both else "one of record and alert is missing"
        place = at.below("alert") if both else at
        yield Problem("policy/value" if both else "policy/missing-key", place, message, "Give exactly one of them.")
    if rule.record is not None:
        yield from _check_record(rule, at)
    for fault in promql.parse(rule.expr).faults:
        if fault.needs is None:
            yield Problem("rules/syntax", _part(at, fault.offset, fault.length), fault.message, _MEND)
    for field in ("labels", "annotations"):
        for key, text in getattr(rule, field).items():
            if rule.alert is not None:
                yield from _check_template(text, at.below(field, key))


_MEND = "Correct the expression: Prometheus would go on with its old rules, and not start again."


def _part(at: Origin, offset: int, length: int) -> Origin:
    return documents.within(at.below("expr"), offset, length)


def _check_record(rule: Rule, at: Origin) -> Iterator[Problem]:
    name = rule.record or ""
    for prefix, reason in _RESERVED.items():
        if name.startswith(prefix):
            help = "Choose a prefix of your own, as in team:node_load:rate5m."
            yield Problem("rules/reserved-name", at.below("record"), f"{shown(name)}: {reason}", help)
    if ":" not in name:
        message = f"{shown(name)} looks like a metric of an exporter: recorded series have a colon in their name"
        yield Problem("rules/record-name", at.below("record"), message, "Name it level:metric:operation.")
    given = {"for": rule.for_, "keep_firing_for": rule.keep_firing_for, "annotations": rule.annotations}
    for field, value in given.items():
        if value:
            message = f"{field} belongs to an alert: Prometheus refuses a record with it"
            yield Problem("rules/record-field", at.below(field), message, f"Remove {field}.")


def _check_template(text: str, at: Origin) -> Iterator[Problem]:
    """Unknown functions and actions that are never closed: Prometheus would refuse the file, or send the error."""
    found = templates.read(text)
    for offset, action in found.actions:
        for word in _WORD.finditer(action):
            name = word.group()
            if name not in prometheus.TEMPLATE_FUNCTIONS and name not in _KEYWORDS:
                place = documents.within(at, offset + word.start(), len(name))
                message = f"templates of alerts have no function {shown(name)}"
                help = "Write .Labels, .Value or one of Prometheus's functions."
                yield Problem("rules/template", place, message, help)
    if found.stray is not None:
        mark = text[found.stray : found.stray + 2]
        message = f"{mark} has no counterpart"
        yield Problem(
            "rules/template", documents.within(at, found.stray, 2), message, "Close the action, or remove it."
        )


def judge(rule: Rule, interval: str | None, at: Origin, site: Site) -> Iterator[Problem]:
    """What the cluster's Prometheus does not know, and windows that are too short for its scrapes."""
    found = promql.parse(rule.expr)
    yield from _judge_syntax(found, at, site.prometheus)
    for call in () if found.faults else found.calls:
        yield from _judge_function(call.name, _part(at, call.offset, len(call.name)), site.prometheus)
    if rule.keep_firing_for and site.prometheus is not None:
        since = prometheus.KEEP_FIRING_FOR
        if (site.prometheus.major, site.prometheus.minor) < since:
            message = f"Prometheus {site.prometheus} does not know keep_firing_for and refuses the file"
            help = f"It is there from {prometheus.written(since)} on."
            yield Problem("rules/unsupported", at.below("keep_firing_for"), message, help)
    for window in found.windows:
        yield from _judge_window(window, interval, at, site.monitoring.scrape_interval)


def _judge_syntax(found: promql.Expression, at: Origin, version: Version | None) -> Iterator[Problem]:
    for fault in found.faults:
        if fault.needs is None:
            continue
        place = _part(at, fault.offset, fault.length)
        if version is not None and (version.major, version.minor) >= fault.needs:
            message = f"{fault.message}, and Prometheus {version} is newer than what it knows"
            help = "kubevirt-policy test settles it, with promtool."
            yield Problem("rules/newer-syntax", place, message, help)
        else:
            yield Problem("rules/syntax", place, fault.message, _MEND)


def _judge_function(name: str, place: Origin, version: Version | None) -> Iterator[Problem]:
    since, gone = prometheus.FUNCTIONS.get(name), prometheus.REMOVED.get(name)
    if since is None:
        message = f"there is no function {shown(name)} in PromQL"
        yield Problem("rules/unknown-function", place, message, _near(name))
    elif version is not None and not prometheus.known(name, version):
        message = f"Prometheus {version} does not know {name}() and refuses the whole file"
        help = (
            f"It is there from {prometheus.written(since)} on."
            if (version.major, version.minor) < since or gone is None
            else f"It is called {gone[1]} since {prometheus.written(gone[0])}."
        )
        yield Problem("rules/unknown-function", place, message, help)


def _near(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, prometheus.FUNCTIONS, 1)
    return f"Did you mean {near[0]}?" if near else "See the functions of Prometheus's documentation."


def _judge_window(window: Window, interval: str | None, at: Origin, scrape: int) -> Iterator[Problem]:
    if window.function not in _RATES or (window.subquery and window.step is None):
        return
    step = window.step or scrape
    samples, place = window.seconds / step, _part(at, window.offset, window.length)
    every = f"{step:g}s" if window.step else f"a scrape interval of {scrape}s"
    if samples < _SCRAPES_WANTED:
        short = samples < _SCRAPES_NEEDED
        effect = "it finds less than two samples" if short else "one missed scrape leaves a gap"
        message = f"{window.function} over {window.seconds:g}s with {every}: {effect}"
        help = f"Use at least {_SCRAPES_WANTED * step:g}s."
        yield Problem("rules/window" if short else "rules/narrow-window", place, message, help)
    elif interval and prometheus_seconds(interval) > window.seconds:
        message = f"the group is evaluated every {interval}, and {window.function} looks back {window.seconds:g}s only"
        help = "Widen the window or shorten the interval: what happens in between is never seen."
        yield Problem("rules/narrow-window", place, message, help)
