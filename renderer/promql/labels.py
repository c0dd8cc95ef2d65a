"""Which labels surely do not come out of an expression."""

from __future__ import annotations

from typing import Any

_KEEPING = {"topk", "bottomk", "limitk", "limit_ratio"}
LABELLING = {"label_replace", "label_join"}
BARE = {"scalar", "vector", "time", "pi"}


def loses(node: Any, label: str) -> bool:
    """Whether no sample of the result can have the label; False where that depends on the data."""
    match type(node).__name__:
        case "AggregateExpr":
            return _aggregation(node, label)
        case "BinaryExpr":
            return _binary(node, label)
        case "Call":
            return _call(node, label)
        case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            return loses(node.expr, label)
        case "NumberLiteral" | "StringLiteral":
            return True
        case _:
            return False


def _aggregation(node: Any, label: str) -> bool:
    if str(node.op).strip() in _KEEPING:
        return loses(node.expr, label)
    if node.modifier is None:
        return not _counted(node, label)
    by = str(node.modifier.type).endswith("By")
    kept = (label in node.modifier.labels) == by
    return (not kept or loses(node.expr, label)) and not _counted(node, label)


def _counted(node: Any, label: str) -> bool:
    """`count_values("label", …)` makes one."""
    return node.param is not None and getattr(node.param, "val", None) == label


def _call(node: Any, label: str) -> bool:
    name, args = str(node.func.name), list(node.args)
    if name in LABELLING and len(args) > 1 and getattr(args[1], "val", None) == label:
        return False
    if name in BARE or not args:
        return True
    return all(loses(argument, label) for argument in args)


def _binary(node: Any, label: str) -> bool:
    operator = str(node.op).strip()
    if operator in ("and", "unless"):
        return loses(node.lhs, label)
    left, right = loses(node.lhs, label), loses(node.rhs, label)
    if operator == "or":
        return left and right
    if _scalar(node.lhs) or _scalar(node.rhs):
        return left and right
    return _matched(node.modifier, label, left=left, right=right)


def _matched(modifier: Any, label: str, *, left: bool, right: bool) -> bool:
    card = str(modifier.card) if modifier is not None else ""
    if card.endswith(("ManyToOne", "OneToMany")):
        many, one = (left, right) if card.endswith("ManyToOne") else (right, left)
        return one if label in (modifier.group_labels or ()) else many
    matching = modifier.matching if modifier is not None else None
    if matching is None:
        return left or right
    listed, include = label in matching.labels, str(matching.type).endswith("Include")
    return listed != include or left or right


def _scalar(node: Any) -> bool:
    kind = type(node).__name__
    return (
        kind == "NumberLiteral"
        or (kind == "Call" and str(node.func.name) in ("scalar", "time", "pi"))
        or (kind in ("ParenExpr", "UnaryExpr") and _scalar(node.expr))
    )
