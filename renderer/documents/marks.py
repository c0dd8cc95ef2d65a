"""Where each field of a document stands in its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from renderer import places
from renderer.documents.composing import compose
from renderer.documents.limits import POLICY, Limits
from renderer.documents.refusals import Refused, position
from renderer.model import Document, Origin, Path, Position


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

    def moved(self, file: str) -> Marks:
        """The marks of another file with the same text."""
        return Marks(Source(file, self._source.text, self._source.limits), self._index)

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

    def within(self, path: Path, offset: int, length: int) -> Position:
        """The position of a part of the text at `path`, counted in characters of its value."""
        node: Node | None = self._source.nodes[self._index]
        for step in path:
            node = _child(node, step)[1] if node is not None else None
        if not isinstance(node, ScalarNode):
            return self.at(path)
        start = (node.start_mark.line, node.start_mark.column)
        line, column = places.within(self._source.text, start, node.style, node.value[:offset])
        return Position(self._source.file, line + 1, column + 1, max(length, 1))


class _Within:
    """Marks by which every place is one within the text at a path."""

    __slots__ = ("_length", "_marks", "_offset", "_path")

    def __init__(self, marks: Marks, path: Path, offset: int, length: int) -> None:
        self._marks = marks
        self._path = path
        self._offset = offset
        self._length = length

    def at(self, path: Path, *, key: bool = False) -> Position:
        del path, key
        return self._marks.within(self._path, self._offset, self._length)


def within(origin: Origin, offset: int, length: int = 1) -> Origin:
    """The origin of a part of a text, such as the third word of an expression in a block scalar."""
    document = origin.document
    if not isinstance(document.marks, Marks):
        return origin
    marks = _Within(document.marks, origin.path, offset, length)
    return Origin(Document(document.file, document.data, marks), origin.path)


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
