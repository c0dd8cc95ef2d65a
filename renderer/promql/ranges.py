"""What lets the values of an expression leave 0…1, as far as its text tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from renderer.promql import nodes
from renderer.promql.labels import LABELLING

_NO_SHARES = re.compile(
    r":sum$|_bytes$|_bytes:|^node_load\d+$|:eviction_count:|^kubevirt_policy:.*:(?:count|info|\w+1h|\w*seconds|rate)$"
)
"""Names of sums, of sizes, and of the length of the run queue, none of which is a share."""
_COUNTERS = re.compile(r"_(?:total|count|sum)$")
_PASSING = LABELLING | frozenset(
    (
        *("sort", "sort_desc", "sort_by_label", "sort_by_label_desc"),
        *("abs", "ceil", "floor", "round", "scalar", "vector", "clamp_min", "deg", "rad"),
        *("avg_over_time", "last_over_time", "first_over_time", "max_over_time", "min_over_time"),
        *("quantile_over_time", "stddev_over_time", "mad_over_time"),
    )
)
_ADDING = {"sum_over_time": "adds up what it reads", "increase": "counts up over its window"}
_RATES = ("rate", "irate")
_COUNTING = ("count", "count_values")
_SAMPLES = {"count_over_time", "changes", "resets"}


def leaves(node: Any) -> list[str]:
    """What makes more than 1 of a share, each once, in words that follow a subject; empty where nothing does."""
    return list(dict.fromkeys(_leaves(node, counted=False)))


def _leaves(node: Any, *, counted: bool) -> Iterator[str]:
    """`counted`: a function takes the rate of what is read, so that a counter may be a share."""
    match nodes.kind(node):
        case "VectorSelector":
            yield from _series(nodes.metric(node), counted=counted)
        case "MatrixSelector":
            yield from _leaves(node.vector_selector, counted=counted)
        case "AggregateExpr":
            yield from _aggregation(node, counted=counted)
        case "BinaryExpr":
            yield from _binary(node, counted=counted)
        case "Call":
            yield from _call(node)
        case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            yield from _leaves(node.expr, counted=counted)
        case _:
            pass


def _series(name: str, *, counted: bool) -> Iterator[str]:
    if _NO_SHARES.search(name) or ("_bytes_" in name and name.endswith("_total")):
        yield f"reads {name}, which is no share"
    elif not counted and _COUNTERS.search(name):
        yield f"reads {name}, which only grows"


def _aggregation(node: Any, *, counted: bool) -> Iterator[str]:
    name = nodes.operator(node)
    if name in _COUNTING:
        yield "counts series"
    elif name == "sum":
        yield f"adds up {'rates' if nodes.function(nodes.bare(node.expr)) in _RATES else 'what it reads'}"
    elif name != "group":
        yield from _leaves(node.expr, counted=counted)


def _call(node: Any) -> Iterator[str]:
    name, args = nodes.function(node), list(node.args)
    if name in ("clamp", "clamp_max"):
        if not _at_most_one(args[-1]):
            yield from _leaves(args[0], counted=False)
    elif name in _RATES:
        yield from _leaves(args[0], counted=True)
    elif name in _ADDING:
        yield _ADDING[name]
    elif name in _SAMPLES:
        yield "counts samples"
    elif name in _PASSING:
        for argument in args:
            yield from _leaves(argument, counted=False)


def _binary(node: Any, *, counted: bool) -> Iterator[str]:
    operator = nodes.operator(node)
    left, right = nodes.number(node.lhs), nodes.number(node.rhs)
    if nodes.returns_bool(node) or (operator in ("<", "<=") and _at_most_one(node.rhs)):
        return
    if operator == "/":
        yield from _divided(node, right, counted=counted)
        return
    if operator == "*":
        yield from (f"multiplies by {factor:g}" for factor in (left, right) if factor is not None and factor > 1)
    sides = [node.lhs] if operator in ("and", "unless", "^", "%") else [node.lhs, node.rhs]
    for side in sides:
        yield from _leaves(side, counted=counted)


def _divided(node: Any, by: float | None, *, counted: bool) -> Iterator[str]:
    if by is not None and by <= 1:
        if by < 1:
            yield f"divides by {by:g}"
        yield from _leaves(node.lhs, counted=counted)
    elif by is None and nodes.kind(nodes.bare(node.lhs)) == "BinaryExpr":
        above = nodes.bare(node.lhs)
        factors = [nodes.number(above.lhs), nodes.number(above.rhs)] if nodes.operator(above) == "*" else []
        yield from (f"multiplies by {factor:g}" for factor in factors if factor is not None and factor > 1)


def _at_most_one(node: Any) -> bool:
    """An upper limit that is computed is taken for one."""
    number = nodes.number(node)
    return number is None or number <= 1
