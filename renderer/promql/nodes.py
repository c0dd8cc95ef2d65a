"""The nodes of the parser's tree, as what walks it asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def kind(node: Any) -> str:
    """`VectorSelector`, `MatrixSelector`, `AggregateExpr`, `BinaryExpr`, `Call`, `ParenExpr`, `UnaryExpr` and so on."""
    return type(node).__name__


def bare(node: Any) -> Any:
    """Without the brackets around it."""
    while kind(node) == "ParenExpr":
        node = node.expr
    return node


def operator(node: Any) -> str:
    """Of a binary expression or an aggregation, as it is written."""
    return str(node.op).strip()


def function(node: Any) -> str:
    """The name of what a call calls; empty for other nodes."""
    return str(node.func.name) if kind(node) == "Call" else ""


def number(node: Any) -> float | None:
    """The value of a literal, in brackets too; None for what is none."""
    node = bare(node)
    return float(node.val) if kind(node) == "NumberLiteral" else None


def text(node: Any) -> str | None:
    """The value of a text."""
    return str(node.val) if kind(node) == "StringLiteral" else None


def exact(matcher: Any) -> bool:
    """Whether a matcher asks for one value."""
    return str(matcher.op).endswith(".Equal")


def by(modifier: Any) -> bool:
    """Whether an aggregation keeps the labels that it lists; else it keeps the others."""
    return str(modifier.type).endswith("By")


def returns_bool(node: Any) -> bool:
    """Whether a comparison gives 0 or 1 for each sample instead of dropping some."""
    return node.modifier is not None and bool(node.modifier.return_bool)


def metric(selector: Any) -> str:
    """The name that a selector of an instant asks for, also as `{__name__="…"}`; empty where it asks for several."""
    named = [one.value for one in selector.matchers.matchers if one.name == "__name__" and exact(one)]
    return str(selector.name or next(iter(named), ""))


def many_to_one(node: Any) -> tuple[Any, Any] | None:
    """The sides of a binary expression with `group_left` or `group_right`, that with many series first."""
    card = str(node.modifier.card) if node.modifier is not None else ""
    if card.endswith("ManyToOne"):
        return node.lhs, node.rhs
    return (node.rhs, node.lhs) if card.endswith("OneToMany") else None


def children(node: Any) -> list[Any]:
    """The expressions right below, in the order of the text."""
    match kind(node):
        case "Call":
            return list(node.args)
        case "BinaryExpr":
            return [node.lhs, node.rhs]
        case "AggregateExpr":
            return [node.expr] if node.param is None else [node.param, node.expr]
        case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
            return [node.expr]
        case "MatrixSelector":
            return [node.vector_selector]
        case _:
            return []


def walk(node: Any) -> Iterator[Any]:
    """The node and all below."""
    yield node
    for child in children(node):
        yield from walk(child)
