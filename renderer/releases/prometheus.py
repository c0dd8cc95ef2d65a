"""Which functions and syntax each release of Prometheus knows, in expressions, rules and the templates of alerts.

Sources: CHANGELOG.md, promql/parser/functions.go, promql/parser/lex.go, cmd/prometheus/main.go and
template/template.go of prometheus/prometheus v3.16.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from renderer.releases.versions import Version

Release = tuple[int, int]

KEEP_FIRING_FOR: Release = (2, 42)
_OLDEST: Release = (2, 0)

_ADDED: Mapping[Release, str] = {
    _OLDEST: "abs absent avg_over_time ceil changes clamp_max clamp_min count_over_time day_of_month day_of_week "
    "days_in_month delta deriv exp floor histogram_quantile holt_winters hour idelta increase irate label_join "
    "label_replace ln log10 log2 max_over_time min_over_time minute month predict_linear quantile_over_time "
    "rate resets round scalar sort sort_desc sqrt stddev_over_time stdvar_over_time sum_over_time time timestamp "
    "vector year",
    (2, 16): "absent_over_time",
    (2, 26): "clamp last_over_time sgn",
    (2, 29): "present_over_time",
    (2, 31): "acos acosh asin asinh atan atanh cos cosh deg pi rad sin sinh tan tanh",
    (2, 39): "day_of_year",
    (2, 40): "histogram_count histogram_fraction histogram_sum",
    (2, 47): "histogram_stddev histogram_stdvar",
    (2, 49): "mad_over_time sort_by_label sort_by_label_desc",
    (2, 51): "histogram_avg",
    (2, 55): "info",
    (3, 0): "double_exponential_smoothing",
    (3, 5): "ts_of_last_over_time ts_of_max_over_time ts_of_min_over_time",
    (3, 7): "first_over_time ts_of_first_over_time",
    (3, 11): "histogram_quantiles",
    (3, 12): "end range start step",
    (3, 13): "max_of min_of",
    (3, 14): "start_timestamp",
    (3, 16): "integral",
}
FUNCTIONS: Mapping[str, Release] = {name: since for since, names in _ADDED.items() for name in names.split()}
"""By name, the release that brought it; those of expressions."""

REMOVED: Mapping[str, tuple[Release, str]] = {"holt_winters": ((3, 0), "double_exponential_smoothing")}
"""The release that took it away, and what it is called since."""

SYNTAX: Mapping[str, Release] = {
    "group()": (2, 20),
    "durations of several units": (2, 21),
    "atan2": (2, 31),
    "the modifier @": (2, 25),
    "a negative offset": (2, 26),
    "arithmetic in durations": (3, 4),
    "digits in groups": (2, 54),
    "limitk()": (2, 54),
    "limit_ratio()": (2, 54),
    "durations as numbers": (2, 54),
    "numbers as durations": (2, 54),
    "names in quotes": (3, 0),
    "anchored": (3, 7),
    "smoothed": (3, 7),
    "fill()": (3, 10),
    "fill_left()": (3, 10),
    "fill_right()": (3, 10),
    "</": (3, 11),
    ">/": (3, 11),
}
"""By name, the release that brought it without a flag, or behind one that is still there."""

_FUNCTIONS_FLAG = "promql-experimental-functions"
_EXPERIMENTAL: Mapping[str, str] = {
    _FUNCTIONS_FLAG: "double_exponential_smoothing end histogram_quantiles info integral limit_ratio() limitk() "
    "mad_over_time max_of min_of range sort_by_label sort_by_label_desc start start_timestamp step "
    "ts_of_first_over_time ts_of_last_over_time ts_of_max_over_time ts_of_min_over_time first_over_time",
    "promql-binop-fill-modifiers": "fill() fill_left() fill_right()",
    "promql-extended-range-selectors": "anchored smoothed",
}
FLAGS: Mapping[str, str] = {name: flag for flag, names in _EXPERIMENTAL.items() for name in names.split()} | {
    "the modifier @": "promql-at-modifier",
    "a negative offset": "promql-negative-offset",
    "arithmetic in durations": "promql-duration-expr",
}
"""By function or syntax, what `--enable-feature` has to name."""
STABLE: Mapping[str, Release] = {
    "the modifier @": (2, 33),
    "a negative offset": (2, 33),
    "arithmetic in durations": (3, 14),
    "first_over_time": (3, 14),
    "anchored": (3, 16),
    "smoothed": (3, 16),
}
"""The release from which no flag is needed any more."""

_TEMPLATES = """\
args externalURL first graphLink humanize humanize1024 humanizeDuration humanizePercentage humanizeTimestamp label match
now parseDuration pathPrefix query reReplaceAll safeHtml sortByLabel stripDomain stripPort strvalue tableLink title
toDuration toLower toTime toUpper urlQueryEscape value
and call eq ge gt html index js le len lt ne not or print printf println slice urlquery"""
TEMPLATE_FUNCTIONS = frozenset(_TEMPLATES.split())
"""Prometheus's own, and those of Go's text/template."""
TEMPLATES_SINCE: Mapping[str, Release] = {
    "humanizePercentage": (2, 11),
    "parseDuration": (2, 32),
    "stripPort": (2, 33),
    "stripDomain": (2, 36),
    "toTime": (2, 38),
    "now": (3, 6),
    "toDuration": (3, 6),
    "urlQueryEscape": (3, 8),
}
"""The release that brought a function of templates, where that is not every 2.x."""


def known(name: str, version: Version) -> bool:
    """Whether a release knows a function."""
    release = version.release
    gone = REMOVED.get(name)
    return name in FUNCTIONS and FUNCTIONS[name] <= release and not (gone and gone[0] <= release)


def flag(name: str, version: Version | None) -> str:
    """The flag without which a release refuses a function or syntax that it knows; empty where none is needed."""
    stable = STABLE.get(name)
    free = stable is not None and (version is None or version.release >= stable)
    return "" if free else FLAGS.get(name, "")


def written(release: Release) -> str:
    """`3.5`"""
    return f"{release[0]}.{release[1]}"
