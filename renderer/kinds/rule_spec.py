"""The rules of a `RecordingRules` policy, as Prometheus writes them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, field

from renderer.kinds.fields import AlertName, GroupName, LabelName, MetricName, PromDuration, Strict
from renderer.model import Body

Text: TypeAlias = Annotated[str, Meta(max_length=65_536)]
_BLANKS = " \t\r\n"
"""White space to PromQL (prometheus v3.16.0 promql/parser/lex.go, isSpace and isEndOfLine)."""


class Rule(Strict, frozen=True, kw_only=True):
    """A rule as Prometheus writes it: a record, or an alert."""

    record: Annotated[MetricName | None, Meta(description="Name of the series that is recorded.")] = None
    alert: Annotated[AlertName | None, Meta(description="Name of the alert that is raised.")] = None
    expr: Annotated[str, Meta(min_length=1, max_length=65_536, description="PromQL.")]
    labels: Annotated[dict[LabelName, Text], Meta(description="Set on the result.")] = {}
    annotations: Annotated[dict[LabelName, Text], Meta(description="Alerts only.")] = {}
    for_: Annotated[
        PromDuration | None, Meta(description="Alerts only: how long the condition holds before it fires.")
    ] = field(default=None, name="for")
    keep_firing_for: Annotated[
        PromDuration | None, Meta(description="Alerts only: how long it goes on firing afterwards (Prometheus 2.42).")
    ] = field(default=None, name="keep_firing_for")

    @property
    def name(self) -> str:
        return self.record or self.alert or ""

    @property
    def body(self) -> Body:
        """The rule as it is rendered."""
        kind = "alert" if self.alert is not None else "record"
        given = {
            "for": self.for_,
            "keep_firing_for": self.keep_firing_for,
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
        }
        return {kind: self.name, "expr": _tidy(self.expr)} | {key: value for key, value in given.items() if value}


def _tidy(expr: str) -> str:
    """Without blanks at the ends of lines, which say nothing, unless a text between backticks holds them.

    Lines end with a newline alone: to PromQL the other characters at which Python splits are part of a text.
    """
    text = expr.strip(_BLANKS)
    return text if "`" in text else "\n".join(line.rstrip(_BLANKS) for line in text.split("\n"))


class Group(Strict, frozen=True, kw_only=True):
    """Rules that are evaluated one after the other."""

    name: Annotated[GroupName, Meta(description="Rendered as <policy>.<name>.")]
    interval: Annotated[PromDuration | None, Meta(description="Default: that of the Prometheus.")] = None
    rules: Annotated[list[Rule], Meta(description="Evaluated in this order.", min_length=1)]
