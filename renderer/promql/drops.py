"""What makes an expression return fewer series than it reads."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isnan
from typing import Any

from renderer.promql import nodes
from renderer.promql.labels import BARE
from renderer.promql.numbers import DIVIDING, DROPPING

_CHOOSING = {"topk", "bottomk", "limitk", "limit_ratio"}
_COMPARING = DROPPING | {"!="}
_FILTER = " without bool"


def drops(node: Any, labels: frozenset[str]) -> Iterator[str]:
    """The parts that drop series, as they are written; `labels` are those that tell one series from another.

    What only drops values that are no number, or below zero, is none of them; nor is what an `or` makes up for.
    """
    match nodes.kind(node):
        case "VectorSelector":
            yield from _selector(node, labels)
        case "MatrixSelector":
            yield from _selector(node.vector_selector, labels)
        case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            yield from drops(node.expr, labels)
        case "AggregateExpr":
            yield from _aggregation(node, labels)
        case "Call":
            yield from _call(node, labels)
        case "BinaryExpr":
            yield from _binary(node, labels)
        case _:
            pass


def _selector(node: Any, labels: frozenset[str]) -> Iterator[str]:
    for matcher in node.matchers.matchers:
        if matcher.name in labels and matcher.value and nodes.exact(matcher):
            yield f'{matcher.name}="{matcher.value}"'


def _aggregation(node: Any, labels: frozenset[str]) -> Iterator[str]:
    name, modifier = nodes.operator(node), node.modifier
    apart = modifier is not None and (
        not labels.isdisjoint(modifier.labels) if nodes.by(modifier) else labels.isdisjoint(modifier.labels)
    )
    if name in _CHOOSING and not apart:
        yield f"{name}()"
    # A comparison within drops single series of a node, not the node.
    yield from (one for one in drops(node.expr, labels) if not one.endswith(_FILTER))


def _call(node: Any, labels: frozenset[str]) -> Iterator[str]:
    name = nodes.function(node)
    if name not in BARE:
        for argument in node.args:
            yield from drops(argument, labels)


def _binary(node: Any, labels: frozenset[str]) -> Iterator[str]:
    operator = nodes.operator(node)
    left, right = list(drops(node.lhs, labels)), list(drops(node.rhs, labels))
    if operator == "or":
        yield from [*left, *right] if left and right else ()
        return
    if operator in _COMPARING and not _harmless(node, operator):
        yield f"{operator}{_FILTER}"
    yield from left
    if operator != "unless":  # a / (b > 0) only drops what would be no number
        yield from (one for one in right if operator not in DIVIDING or not one.endswith(_FILTER))


def _harmless(node: Any, operator: str) -> bool:
    """With `bool`, where it drops what is no number (`a == a`), or lets through whatever is a ratio."""
    if nodes.returns_bool(node) or (operator == "==" and str(nodes.bare(node.lhs)) == str(nodes.bare(node.rhs))):
        return True
    value = nodes.number(node.lhs if operator in ("<", "<=") else node.rhs)
    if operator in ("<", "<=") and nodes.number(node.rhs) == inf:
        return True
    if value is None or operator in ("==", "!="):
        return operator == "!=" and value is not None and isnan(value)
    return value < 0 or (value == 0 and operator in (">=", "<="))
