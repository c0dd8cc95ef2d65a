"""Prometheus's answer in, the utilization of each node out, and what is wrong with the other series.  Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from enum import StrEnum

import msgspec
from msgspec import Struct

from renderer.softtaint import classify
from renderer.softtaint.texts import cut
from renderer.values import Value, field

NODE = "instance"
"""The label that names the node, as the descheduler has it (v0.36.0 usageclients.go)."""
_PART = "kubevirt_policy_part"
_VALUE, _TIMESTAMP = "value", "timestamp"
_JOINED = 10
_STRANGERS = 1000
_NAME = 253 + len(":65535")
"""Characters of the longest name of a node, with a port."""


class Reason(StrEnum):
    """Why a sample cannot be used."""

    MISSING = "missing"
    NO_NODE = "no_node"
    NOT_FINITE = "not_finite"
    OUT_OF_RANGE = "out_of_range"
    STALE = "stale"
    TWO_SERIES = "two_series"
    UNKNOWN_NODE = "unknown_node"


class Rejected(Value, frozen=True):
    """A series or a missing one.  `node` as the series names it, `value` in words for people."""

    node: str
    reason: Reason
    value: str = ""
    count: int = 1
    """How many series it stands for: those of unknown nodes are told one by one up to a number."""


class Samples(Value, frozen=True):
    """Utilizations in points by the name of the node, and the series that are none of those."""

    points: dict[str, int] = field(default_factory=dict)
    rejected: list[Rejected] = field(default_factory=list)


class AnswerError(ValueError):
    """What came is no answer of Prometheus, or no vector."""


class _Series(Struct):
    metric: dict[str, str]
    value: tuple[float, str] | None = None
    """Missing where it is a histogram."""


class _Data(Struct, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Answer(Struct):
    data: _Data


def expression(query: str) -> str:
    """One query for all values and for the times they were measured at.

    The time of a plain selector is that of its sample; any other expression is as old as its evaluation.
    """
    # A query may end in a comment.
    return (
        f'label_replace((\n{query}\n), "{_PART}", "{_VALUE}", "", "")\nor\n'
        f'label_replace(timestamp(\n{query}\n), "{_PART}", "{_TIMESTAMP}", "", "")'
    )


def read(answer: bytes, stale_after: int) -> Samples:
    """The samples in an answer to `expression`, none older than that many seconds.

    Raises `AnswerError`.  Ages are by Prometheus's own clock, which is in the answer.
    """
    try:
        data = msgspec.json.decode(answer, type=_Answer).data
        if data.result_type != "vector":
            raise AnswerError(f"the query gives a {cut(data.result_type)}, not a vector")
        series = msgspec.json.decode(data.result, type=list[_Series])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AnswerError(f"not an answer of Prometheus: {cut(str(error))}") from error
    parts: dict[str, dict[str, list[_Series]]] = {_VALUE: {}, _TIMESTAMP: {}}
    for one in series:
        by_node = parts.setdefault(one.metric.get(_PART, _VALUE), {})
        by_node.setdefault(one.metric.get(NODE, ""), []).append(one)
    found = Samples()
    for node, values in parts[_VALUE].items():
        _judge(found, node, values, parts[_TIMESTAMP].get(node, []), stale_after)
    return found


def _judge(found: Samples, node: str, values: list[_Series], times: list[_Series], stale_after: int) -> None:
    texts = [one.value[1] if one.value else "a histogram" for one in values[:_JOINED]]
    reason = _wrong(node, values, times, stale_after)
    if reason is None:
        found.points[node] = classify.percent(_number(values[0]))
    else:
        found.rejected.append(Rejected(node, reason, cut(", ".join(map(cut, texts)))))


def _wrong(node: str, values: list[_Series], times: list[_Series], stale_after: int) -> Reason | None:
    if not node:
        return Reason.NO_NODE
    if len(values) != 1:
        return Reason.TWO_SERIES
    sample = _number(values[0])
    if not math.isfinite(sample):
        return Reason.NOT_FINITE
    if not 0 <= sample <= 1:
        return Reason.OUT_OF_RANGE
    if len(times) != 1 or not _age(times[0]) <= stale_after:
        return Reason.STALE
    return None


def _number(series: _Series) -> float:
    """NaN for what is none."""
    try:
        return float(series.value[1]) if series.value else math.nan
    except ValueError:
        return math.nan


def _age(time: _Series) -> float:
    """Seconds between the sample and the evaluation of the query."""
    return math.nan if time.value is None else time.value[0] - _number(time)


def compare(samples: Samples, scope: Collection[str], known: Collection[str]) -> list[Rejected]:
    """What is wrong with the series that came, those of unknown nodes too, and nodes of the scope without any.

    Series of known nodes outside the scope are of no interest, whatever they hold.
    """
    seen = {one.node for one in samples.rejected} | samples.points.keys()
    wrong = [one for one in samples.rejected if not one.node or one.node in scope]
    strange = sorted(seen - set(known) - {""})
    missing = sorted(set(scope) - seen)
    aliases = _aliases(strange) if missing else {}
    return [
        *wrong,
        *_strangers(strange),
        *(Rejected(name, Reason.MISSING, _alias(name, aliases)) for name in missing),
    ]


def _strangers(strange: list[str]) -> Iterator[Rejected]:
    for name in strange[:_STRANGERS]:
        yield Rejected(cut(name), Reason.UNKNOWN_NODE)
    more = len(strange) - _STRANGERS
    if more > 0:
        yield Rejected("", Reason.UNKNOWN_NODE, f"{more} more", more)


def _aliases(strange: list[str]) -> dict[str, str]:
    """Series by what their node could be called: their name without a port, and without parts of the domain."""
    found: dict[str, str] = {}
    for name in strange:
        if len(name) > _NAME:  # each part of it would be kept, whatever somebody puts into a label
            continue
        for host in (name.rpartition(":")[0] or name, name):
            for short in _shorter(host):
                found.setdefault(short, name)
    return found


def _shorter(host: str) -> Iterator[str]:
    """The name, and what is left of it without its last labels."""
    while host:
        yield host
        host = host.rpartition(".")[0]


def _alias(name: str, aliases: dict[str, str]) -> str:
    """Tells that a series bears nearly the name of a node: with or without a domain, or with a port."""
    for short in _shorter(name):
        other = aliases.get(short)
        if other is not None and (short == name or short in (other, other.rpartition(":")[0])):
            return f"there is a series named {cut(other)}"
    return ""


def counts(rejected: list[Rejected]) -> Iterator[tuple[str, int]]:
    """How often each reason occurs, in the order of the reasons."""
    for reason in Reason:
        number = sum(one.count for one in rejected if one.reason is reason)
        if number:
            yield reason.value, number
