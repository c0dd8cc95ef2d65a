"""Whether the samples of an expression can be NaN because something was divided by zero."""

from __future__ import annotations

from typing import Any

DROPPING = {"==", ">", ">=", "<", "<="}
DIVIDING = {"/", "%"}
_FIXED = {"pi", "vector", "scalar"}
_COUNTING = {"count", "group", "count_values"}


def unguarded(node: Any) -> bool:
    """Whether a quotient whose denominator may be zero reaches the result, and no comparison drops what is no number.

    `clamp` and aggregations hand a NaN on.
    """
    match type(node).__name__:
        case "BinaryExpr":
            return _binary(node)
        case "AggregateExpr":
            return str(node.op).strip() not in _COUNTING and unguarded(node.expr)
        case "Call":
            return any(unguarded(argument) for argument in node.args)
        case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            return unguarded(node.expr)
        case _:
            return False


def constant(node: Any) -> bool:
    """Whether nothing is read, neither series nor the clock, and it is no `vector(…)`, which says so by itself."""
    return not (type(node).__name__ == "Call" and str(node.func.name) == "vector") and _fixed(node)


def _fixed(node: Any) -> bool:
    match type(node).__name__:
        case "NumberLiteral":
            return True
        case "BinaryExpr":
            return _fixed(node.lhs) and _fixed(node.rhs)
        case "ParenExpr" | "UnaryExpr":
            return _fixed(node.expr)
        case "Call":
            return str(node.func.name) in _FIXED and all(_fixed(argument) for argument in node.args)
        case _:
            return False


def _binary(node: Any) -> bool:
    operator = str(node.op).strip()
    if operator in DROPPING:
        return False
    if operator in DIVIDING and not _nonzero(node.rhs):
        return True
    if operator in ("and", "unless"):
        return unguarded(node.lhs)
    return unguarded(node.lhs) or unguarded(node.rhs)


def _nonzero(node: Any) -> bool:
    while type(node).__name__ == "ParenExpr":
        node = node.expr
    if type(node).__name__ == "NumberLiteral":
        return bool(node.val)
    return type(node).__name__ == "BinaryExpr" and str(node.op).strip() in DROPPING
