"""Which expressions have no sample that is zero."""

from __future__ import annotations

from typing import Any

from renderer.promql import nodes

_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "!=": "!="}
_COUNTING = {"count", "group", "count_values"}
_BETWEEN = {"max", "min", "avg", "sum", "quantile", "topk", "bottomk", "limitk", "limit_ratio"}
"""Aggregations that give something positive of positive values."""
_ALWAYS = {"pi", "time", "exp", "count_over_time", "year", "month", "day_of_month", "day_of_year", "days_in_month"}
_KEEPING = {"abs", "ceil", "sqrt", "scalar", "vector", "label_replace", "label_join", "sort", "sort_desc"} | {
    f"{name}_over_time" for name in ("max", "min", "avg", "sum", "last", "first")
}


def nonzero(node: Any) -> bool:
    """Whether every sample is surely above or below zero."""
    node = nodes.bare(node)
    if nodes.kind(node) == "UnaryExpr":
        return nonzero(node.expr)
    number, compared = nodes.number(node), _compared(node)
    if number is not None:
        return number != 0
    if compared is not None:
        operator, limit = compared
        return _above(operator, limit) or (operator == "!=" and limit == 0) or _above(_TURNED[operator], -limit)
    return _positive(node)


def _positive(node: Any) -> bool:
    node = nodes.bare(node)
    match nodes.kind(node):
        case "NumberLiteral":
            return bool(node.val > 0)
        case "AggregateExpr":
            name = nodes.operator(node)
            return name in _COUNTING or (name in _BETWEEN and _positive(node.expr))
        case "Call":
            return _call(nodes.function(node), list(node.args))
        case "SubqueryExpr":
            return _positive(node.expr)
        case "BinaryExpr":
            return _binary(node)
        case _:
            return False


def _call(name: str, args: list[Any]) -> bool:
    if name in ("clamp", "clamp_min"):
        return all(_positive(limit) for limit in args[1:])
    return name in _ALWAYS or (name in _KEEPING and _positive(args[0]))


def _binary(node: Any) -> bool:
    if (compared := _compared(node)) is not None:
        return _above(*compared)
    match nodes.operator(node):
        case "and" | "unless":
            return _positive(node.lhs)
        case "or" | "+" | "*" | "/" | "^":
            return _positive(node.lhs) and _positive(node.rhs)
        case _:
            return False


def _compared(node: Any) -> tuple[str, float] | None:
    """The operator and the figure of a comparison that lets the samples through that fulfil it."""
    if nodes.kind(node) != "BinaryExpr" or nodes.operator(node) not in _TURNED or nodes.returns_bool(node):
        return None
    left, right = nodes.number(node.lhs), nodes.number(node.rhs)
    if right is not None:
        return nodes.operator(node), right
    return (_TURNED[nodes.operator(node)], left) if left is not None else None


def _above(operator: str, limit: float) -> bool:
    """Whether what compares so with the figure is above zero."""
    return (operator == ">" and limit >= 0) or (operator in (">=", "==") and limit > 0)
