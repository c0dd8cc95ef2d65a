"""Whether the samples of an expression can be NaN because something was divided by zero."""

from __future__ import annotations

from typing import Any

from renderer.promql import nodes, signs

DROPPING = {"==", ">", ">=", "<", "<="}
DIVIDING = {"/", "%"}
_COMPARING = DROPPING | {"!="}
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
    if operator in ("and", "unless"):
        return unguarded(node.lhs) and not _excludes(operator, nodes.bare(node.lhs), nodes.bare(node.rhs))
    if operator in DIVIDING and not signs.nonzero(node.rhs):
        return True
    return unguarded(node.lhs) or unguarded(node.rhs)


def _excludes(operator: str, quotient: Any, condition: Any) -> bool:
    """`a / b and b > 0` and `a / b unless b == 0` have no sample where the denominator is zero."""
    compared = nodes.kind(condition) == "BinaryExpr" and nodes.operator(condition) in _COMPARING
    divided = nodes.kind(quotient) == "BinaryExpr" and nodes.operator(quotient) in DIVIDING
    if not compared or not divided or str(nodes.bare(condition.lhs)) != str(nodes.bare(quotient.rhs)):
        return False
    if operator == "and":
        return signs.nonzero(condition)
    return nodes.operator(condition) in ("==", "<=") and nodes.number(condition.rhs) == 0
