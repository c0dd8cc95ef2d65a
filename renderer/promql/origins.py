"""Which metrics the value of a label comes from, as exporters give it."""

from __future__ import annotations

from typing import Any

from renderer.promql import nodes
from renderer.promql.labels import BARE, LABELLING, loses


def origins(node: Any, label: str) -> set[str]:
    """The metrics whose label reaches the result as it is; none where it is lost, made, or taken from another one."""
    if loses(node, label):
        return set()
    match nodes.kind(node):
        case "VectorSelector":
            return {name} if (name := nodes.metric(node)) else set()
        case "MatrixSelector":
            return origins(node.vector_selector, label)
        case "AggregateExpr" | "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            return origins(node.expr, label)
        case "Call":
            return _call(node, label)
        case "BinaryExpr":
            return _binary(node, label)
        case _:
            return set()


def _call(node: Any, label: str) -> set[str]:
    name, args = nodes.function(node), list(node.args)
    if name in BARE or (name in LABELLING and len(args) > 1 and nodes.text(args[1]) == label):
        return set()
    return set().union(*(origins(argument, label) for argument in args))


def _binary(node: Any, label: str) -> set[str]:
    if nodes.operator(node) in ("and", "unless"):
        return origins(node.lhs, label)
    if sides := nodes.many_to_one(node):
        many, one = sides
        return origins(one if label in (node.modifier.group_labels or ()) else many, label)
    return origins(node.lhs, label) | origins(node.rhs, label)
