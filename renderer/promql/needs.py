"""Which metrics an expression cannot do without."""

from __future__ import annotations

from typing import Any

from renderer.promql import nodes

_WITHOUT = ("absent", "absent_over_time", "scalar", "vector", "time", "pi")
"""Functions that give a sample whether or not there is one to read."""


def needs(node: Any) -> frozenset[str]:
    """The metrics each of which has to have samples, or the result has none."""
    match nodes.kind(node):
        case "VectorSelector":
            return frozenset({name} if (name := nodes.metric(node)) else ())
        case "MatrixSelector":
            return needs(node.vector_selector)
        case "AggregateExpr" | "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            return needs(node.expr)
        case "Call" if nodes.function(node) not in _WITHOUT:
            return frozenset().union(*map(needs, node.args))
        case "BinaryExpr":
            return _binary(node)
        case _:
            return frozenset()


def _binary(node: Any) -> frozenset[str]:
    left, right = needs(node.lhs), needs(node.rhs)
    match nodes.operator(node):
        case "or":
            return left & right
        case "unless":
            return left
        case _:
            return left | right
