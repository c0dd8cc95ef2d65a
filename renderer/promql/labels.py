"""Which labels surely do not come out of an expression."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from renderer.promql import nodes

_SCALARS = ("scalar", "time", "pi")
_EMPTYING = ["", "", ""]
"""The replacement, the source and the pattern with which `label_replace` takes a label away."""
_KEEPING = {"topk", "bottomk", "limitk", "limit_ratio"}
LABELLING = {"label_replace", "label_join"}
ABSENT = {"absent", "absent_over_time"}
BARE = {"scalar", "vector", "time", "pi"}


def loses(node: Any, label: str, without: AbstractSet[str] = frozenset()) -> bool:
    """Whether the result has samples that cannot have the label; False where that depends on the data.

    `without` are names of series that are known not to have it.
    """
    return _Search(label, without).loses(node)


def scalar(node: Any) -> bool:
    """Whether the result is one figure, without labels; what it is combined with keeps its own."""
    match nodes.kind(node):
        case "NumberLiteral":
            return True
        case "Call":
            return nodes.function(node) in _SCALARS
        case "ParenExpr" | "UnaryExpr":
            return scalar(node.expr)
        case "BinaryExpr":
            return scalar(node.lhs) and scalar(node.rhs)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Search:
    label: str
    without: AbstractSet[str]

    def loses(self, node: Any) -> bool:
        match nodes.kind(node):
            case "VectorSelector":
                return nodes.metric(node) in self.without or any(map(self._empty, node.matchers.matchers))
            case "MatrixSelector":
                return self.loses(node.vector_selector)
            case "AggregateExpr":
                return self._aggregation(node)
            case "BinaryExpr":
                return self._binary(node)
            case "Call":
                return self._call(node)
            case "ParenExpr" | "UnaryExpr" | "SubqueryExpr":
                return self.loses(node.expr)
            case _:
                return True

    def _empty(self, matcher: Any) -> bool:
        """`x{instance=""}` selects series without the label."""
        return bool(matcher.name == self.label and not matcher.value and nodes.exact(matcher))

    def _aggregation(self, node: Any) -> bool:
        if nodes.operator(node) in _KEEPING:
            return self.loses(node.expr)
        if node.modifier is None:
            return not self._counted(node)
        kept = (self.label in node.modifier.labels) == nodes.by(node.modifier)
        return (not kept or self.loses(node.expr)) and not self._counted(node)

    def _counted(self, node: Any) -> bool:
        """`count_values("label", …)` makes one."""
        return nodes.text(node.param) == self.label

    def _call(self, node: Any) -> bool:
        name, args = nodes.function(node), list(node.args)
        if name in LABELLING and len(args) > 1 and nodes.text(args[1]) == self.label:
            return name == "label_replace" and [nodes.text(one) for one in args[2:]] == _EMPTYING
        if name in BARE or not args:
            return True
        if name in ABSENT:
            return not self._asked(args[0])
        return all(self.loses(argument) for argument in args)

    def _asked(self, node: Any) -> bool:
        """`absent(x{instance="a"})` has the labels that its selector asks for."""
        selector = node.vector_selector if nodes.kind(node) == "MatrixSelector" else node
        return nodes.kind(selector) == "VectorSelector" and any(
            one.name == self.label and nodes.exact(one) for one in selector.matchers.matchers
        )

    def _binary(self, node: Any) -> bool:
        operator = nodes.operator(node)
        if operator in ("and", "unless"):
            return self.loses(node.lhs)
        left, right = self.loses(node.lhs), self.loses(node.rhs)
        if operator == "or":
            return left or right
        if scalar(node.lhs) or scalar(node.rhs):
            return left and right
        if sides := nodes.many_to_one(node):
            many, one = sides
            return self.loses(one if self.label in (node.modifier.group_labels or ()) else many)
        matching = node.modifier.matching if node.modifier is not None else None
        if matching is None:
            return left or right
        listed, include = self.label in matching.labels, str(matching.type).endswith("Include")
        return listed != include or left or right
