"""What is wrong with a PromQL expression: whatever the cluster, and on a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from renderer import documents, promql
from renderer.kinds.base import Site
from renderer.kinds.fields import prometheus_seconds
from renderer.model import Origin, Problem
from renderer.promql import Call, Fault, Feature, Window
from renderer.releases import prometheus
from renderer.releases.versions import Version
from renderer.words import did_you_mean, shown

_RATES = frozenset(
    (
        "rate",
        "increase",
        "irate",
        "delta",
        "idelta",
        "deriv",
        "predict_linear",
        "changes",
        "resets",
        "double_exponential_smoothing",
    )
)
_Named = TypeVar("_Named", Call, Feature)
_SCRAPES_NEEDED, _SCRAPES_WANTED = 2, 4
_WORDS = frozenset(("null", "nil", "none", "None", "true", "false", "undefined"))
"""What means nothing, or yes and no, in other languages."""
_NO_SAMPLES = {
    "matrix": "many samples for each series, where one is needed",
    "string": "a text, where samples are needed",
}


@dataclass(frozen=True, slots=True)
class Use:
    """What an expression is for, in the words that the findings need."""

    mend: str
    no_samples: str
    refused: str
    settled: str


RULE = Use(
    mend="Correct the expression: Prometheus would go on with its old rules, and not start again.",
    no_samples="Wrap it in a function: promtool and Prometheus load the rule, and no evaluation ever succeeds.",
    refused="refuses the whole file",
    settled="kubevirt-policy test settles it, with promtool.",
)
QUERY = Use(
    mend="Correct the query: no node would have a load.",
    no_samples="Wrap it in a function, as in avg_over_time(…): the descheduler takes nothing but a vector.",
    refused="refuses the query: no node would have a load",
    settled="Ask that Prometheus before you merge: kubevirt-policy test looks at rules only.",
)


def check(text: str, at: Origin, use: Use) -> Iterator[Problem]:
    """What no Prometheus takes."""
    found = promql.parse(text)
    for fault in found.faults:
        if fault.needs is None:
            yield Problem("rules/syntax", documents.within(at, fault.offset, fault.length), fault.message, use.mend)
    if found.kind in _NO_SAMPLES:
        message = f"the result is {_NO_SAMPLES[found.kind]}"
        place = documents.within(at, found.start, len(text[found.start :].partition("\n")[0]))
        yield Problem("rules/syntax", place, message, use.no_samples)
    yield from _check_words(text, at)


def _check_words(text: str, at: Origin) -> Iterator[Problem]:
    for name in sorted(promql.parse(text).needs & _WORDS):
        message = f"{name} is the name of a metric in PromQL, and nobody has it: the expression finds no series"
        place = documents.within(at, *promql.place(text, name))
        yield Problem("rules/no-series", place, message, "Write a condition or a figure; absent(…) asks for nothing.")


def may_be_nan(text: str) -> bool:
    """Whether a division by zero may reach the result."""
    return promql.parse(text).may_be_nan


def judge(text: str, at: Origin, use: Use, site: Site, interval: str | None = None) -> Iterator[Problem]:
    """What the cluster's Prometheus does not know, and windows that are too short for its scrapes.

    `interval` is that of the group which evaluates the expression.
    """
    found = promql.parse(text)
    for fault in found.faults:
        if fault.needs is not None:
            yield from _judge_fault(fault, documents.within(at, fault.offset, fault.length), use, site.prometheus)
    for call in () if found.faults else _first_of_each(found.calls):
        place = documents.within(at, call.offset, len(call.name))
        yield from _judge_function(call.name, place, use, site.prometheus)
    for feature in _first_of_each(found.features):
        place = documents.within(at, feature.offset, feature.length)
        yield from _judge_feature(feature.name, place, use, site.prometheus)
    for window in found.windows:
        yield from _judge_window(window, interval, at, site.monitoring.scrape_interval)


def _first_of_each(found: Iterable[_Named]) -> Iterable[_Named]:
    """One of each name: what is wrong with it holds wherever it stands."""
    first: dict[str, _Named] = {}
    for one in found:
        first.setdefault(one.name, one)
    return first.values()


def _judge_fault(fault: Fault, place: Origin, use: Use, versions: Sequence[Version]) -> Iterator[Problem]:
    """What this tool cannot read, and the Prometheus there perhaps can."""
    problems = list(_judge_feature(fault.feature, place, use, versions)) if fault.feature else []
    oldest, needs = min((one.release for one in versions), default=None), fault.needs or (0, 0)
    if problems:
        yield from problems
    elif fault.feature or (oldest is not None and oldest >= needs):
        message = f"{fault.message}; Prometheus {prometheus.written(needs)} and newer may know it"
        yield Problem("rules/newer-syntax", place, message, use.settled)
    else:
        yield Problem("rules/syntax", place, fault.message, use.mend)


def _judge_function(name: str, place: Origin, use: Use, versions: Sequence[Version]) -> Iterator[Problem]:
    since, gone = prometheus.FUNCTIONS.get(name), prometheus.REMOVED.get(name)
    if since is None:
        yield Problem("rules/unknown-function", place, f"there is no function {shown(name)} in PromQL", _near(name))
    elif gone and any(one.release >= gone[0] for one in versions):
        message = f"Prometheus from {prometheus.written(gone[0])} on does not know {name}() and {use.refused}"
        yield Problem("rules/unknown-function", place, message, f"It is called {gone[1]} since then.")
    elif any(one.release < since for one in versions):
        yield _too_old("rules/unknown-function", f"{name}()", since, place, use)
    else:
        yield from _judge_flag(name, place, use, versions)


def _judge_feature(name: str, place: Origin, use: Use, versions: Sequence[Version]) -> Iterator[Problem]:
    since = prometheus.SYNTAX[name]
    if any(one.release < since for one in versions):
        yield _too_old("rules/unsupported", name, since, place, use)
    else:
        yield from _judge_flag(name, place, use, versions)


def _too_old(code: str, name: str, since: tuple[int, int], place: Origin, use: Use) -> Problem:
    """The same for all clusters whose Prometheus is older, so that they are told of at once."""
    message = f"Prometheus before {prometheus.written(since)} does not know {name} and {use.refused}"
    return Problem(code, place, message, "Do without it there, or correct versions.prometheus.")


def _judge_flag(name: str, place: Origin, use: Use, versions: Sequence[Version]) -> Iterator[Problem]:
    """What a Prometheus knows, and refuses unless it is told otherwise when it starts."""
    flag = next(filter(None, (prometheus.flag(name, version) for version in versions or (None,))), "")
    if flag:
        stable, word = prometheus.STABLE.get(name), f"{name}()" if name in prometheus.FUNCTIONS else name
        who = f"Prometheus before {prometheus.written(stable)}" if stable else "Prometheus"
        message = f"{word} is experimental: without --enable-feature={flag} {who} {use.refused}"
        yield Problem("rules/experimental", place, message, "Set that flag and ignore this, or do without it.")


@cache
def _near(name: str) -> str:
    return did_you_mean(name, prometheus.FUNCTIONS) or "See the functions of Prometheus's documentation."


def _judge_window(window: Window, interval: str | None, at: Origin, scrape: int) -> Iterator[Problem]:
    if window.function not in _RATES or window.beyond or (window.subquery and window.step is None):
        return
    step = window.step or scrape
    samples, place = window.seconds / step, documents.within(at, window.offset, window.length)
    every = f"a step of {step:g}s" if window.step else f"a scrape interval of {scrape}s"
    if samples < _SCRAPES_WANTED:
        short = samples < _SCRAPES_NEEDED
        effect = "it finds fewer than two samples" if short else "one missed scrape leaves a gap"
        message = f"{window.function}() over {window.seconds:g}s is too short for {every}: {effect}"
        help = f"Use at least {_SCRAPES_WANTED * step:g}s."
        yield Problem("rules/window" if short else "rules/narrow-window", place, message, help)
    elif interval and not window.nested and prometheus_seconds(interval) > window.seconds:
        message = f"the group is evaluated every {interval}, and {window.function} looks back {window.seconds:g}s only"
        help = "Widen the window or shorten the interval: what happens in between is never seen."
        yield Problem("rules/narrow-window", place, message, help)
