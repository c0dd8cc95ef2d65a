"""Where each field of a document stands in its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from renderer.documents.composing import compose
from renderer.documents.limits import POLICY, Limits
from renderer.documents.refusals import Refused, position
from renderer.model import Path, Position


class Source:
    """The text of one file.  Positions are needed only for findings, so nodes are composed again for them."""

    def __init__(self, file: str, text: str, limits: Limits = POLICY) -> None:
        self.file = file
        self.text = text
        self.limits = limits

    @cached_property
    def nodes(self) -> list[Node]:
        found: list[Node] = []
        with suppress(Refused):  # what is wrong further down was said on reading
            found.extend(self.compose())
        return found

    def compose(self) -> Iterator[Node]:
        """The root nodes, one for each document that is not empty.  Raises `Refused`."""
        return compose(self.file, self.text, self.limits)


class Marks:
    __slots__ = ("_index", "_source")

    def __init__(self, source: Source, index: int) -> None:
        self._source = source
        self._index = index

    def at(self, path: Path, *, key: bool = False) -> Position:
        node, key_node = self._source.nodes[self._index], None
        for step in path:
            child_key, child = _child(node, step)
            if child is None:
                key = True
                break
            node, key_node = child, child_key or key_node
        block = isinstance(node, MappingNode | SequenceNode) and not node.flow_style
        unseen = isinstance(node, ScalarNode) and node.start_mark.index == node.end_mark.index  # `base:` with nothing
        return position(self._source.file, key_node if key_node is not None and (key or block or unseen) else node)


def _child(node: Node, step: str | int) -> tuple[Node | None, Node | None]:
    if isinstance(node, SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
        item = node.value[step]
        return (item.value[0][0] if isinstance(item, MappingNode) and item.value else item), item
    if isinstance(node, MappingNode):
        for name, item in node.value:
            if isinstance(name, ScalarNode) and name.value == step:
                return name, item
    return None, None


def scalar_lines(file: str, text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the scalars of a file begin and end, as (line, column) from 1; none where it is no valid YAML."""
    try:
        roots = list(Source(file, text).compose())
    except Refused:
        return []
    seen: set[int] = set()
    return [span for root in roots for span in _spans(root, seen)]


def _spans(node: Node, seen: set[int]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, ScalarNode):
        start, end = node.start_mark, node.end_mark
        yield (start.line + 1, start.column + 1), (end.line + 1, end.column + 1)
    else:
        for item in node.value:
            for child in item if isinstance(item, tuple) else (item,):
                yield from _spans(child, seen)
