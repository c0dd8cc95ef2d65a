"""Which metrics the value of a label comes from, as exporters give it."""

from __future__ import annotations

from typing import Any

from renderer.promql.labels import BARE, LABELLING, loses


def origins(node: Any, label: str) -> set[str]:
    """The metrics whose label reaches the result as it is; none where it is lost, made, or taken from another one."""
    if loses(node, label):
        return set()
    match type(node).__name__:
        case "VectorSelector":
            return {node.name} if node.name else set()
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
    name, args = str(node.func.name), list(node.args)
    if name in BARE or (name in LABELLING and len(args) > 1 and getattr(args[1], "val", None) == label):
        return set()
    return set().union(*(origins(argument, label) for argument in args))


def _binary(node: Any, label: str) -> set[str]:
    left, right = origins(node.lhs, label), origins(node.rhs, label)
    if str(node.op).strip() in ("and", "unless"):
        return left
    card = str(node.modifier.card) if node.modifier is not None else ""
    if card.endswith(("ManyToOne", "OneToMany")):
        many, one = (left, right) if card.endswith("ManyToOne") else (right, left)
        return one if label in (node.modifier.group_labels or ()) else many
    return left | right
