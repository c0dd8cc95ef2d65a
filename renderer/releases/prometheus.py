"""Which functions each release of Prometheus knows, in expressions and in the templates of alerts.

Sources: CHANGELOG.md, promql/parser/functions.go and template/template.go of prometheus/prometheus v3.16.0.
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

_TEMPLATES = """\
args externalURL first graphLink humanize humanize1024 humanizeDuration humanizePercentage humanizeTimestamp label match
now parseDuration pathPrefix query reReplaceAll safeHtml sortByLabel stripDomain stripPort strvalue tableLink title tmpl
toDuration toLower toTime toUpper urlQueryEscape value
and call eq ge gt html index js le len lt ne not or print printf println slice urlquery"""
TEMPLATE_FUNCTIONS = frozenset(_TEMPLATES.split())
"""Prometheus's own, and those of Go's text/template."""


def known(name: str, version: Version) -> bool:
    """Whether a release knows a function."""
    release = (version.major, version.minor)
    gone = REMOVED.get(name)
    return name in FUNCTIONS and FUNCTIONS[name] <= release and not (gone and gone[0] <= release)


def written(release: Release) -> str:
    """`3.5`"""
    return f"{release[0]}.{release[1]}"
