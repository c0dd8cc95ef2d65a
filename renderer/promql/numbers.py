"""Whether the samples of an expression can be NaN because something was divided by zero."""

from __future__ import annotations

from typing import Any

from renderer.promql import nodes

DROPPING = {"==", ">", ">=", "<", "<="}
DIVIDING = {"/", "%"}
_FIXED = {"pi", "vector", "scalar"}
_COUNTING = {"count", "group", "count_values"}


def unguarded(node: Any) -> bool:
    """Whether a quotient whose denominator may be zero reaches the result, and no comparison drops what is no number.

    `clamp` and aggregations hand a NaN on.
    """
    match nodes.kind(node):
        case "BinaryExpr":
            return _binary(node)
        case "AggregateExpr":
            return nodes.operator(node) not in _COUNTING and unguarded(node.expr)
        case "Call":
            return any(unguarded(argument) for argument in node.args)
        case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            return unguarded(node.expr)
        case _:
            return False


def constant(node: Any) -> bool:
    """Whether nothing is read, neither series nor the clock, and it is no `vector(…)`, which says so by itself."""
    return nodes.function(node) != "vector" and _fixed(node)


def _fixed(node: Any) -> bool:
    match nodes.kind(node):
        case "NumberLiteral":
            return True
        case "BinaryExpr":
            return _fixed(node.lhs) and _fixed(node.rhs)
        case "ParenExpr" | "UnaryExpr":
            return _fixed(node.expr)
        case "Call":
            return nodes.function(node) in _FIXED and all(_fixed(argument) for argument in node.args)
        case _:
            return False


def _binary(node: Any) -> bool:
    operator = nodes.operator(node)
    if operator in DROPPING:
        return False
    if operator in DIVIDING and not _nonzero(node.rhs):
        return True
    if operator in ("and", "unless"):
        return unguarded(node.lhs)
    return unguarded(node.lhs) or unguarded(node.rhs)


def _nonzero(node: Any) -> bool:
    node = nodes.bare(node)
    if (number := nodes.number(node)) is not None:
        return bool(number)
    return nodes.kind(node) == "BinaryExpr" and nodes.operator(node) in DROPPING
