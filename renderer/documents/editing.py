"""One key of a text in place of another, with the rest of the text as it stands."""

from __future__ import annotations

from ruamel.yaml.nodes import MappingNode, Node

from renderer.documents.composing import compose
from renderer.documents.limits import Limits


def with_key(text: str, key: str, value: str, limits: Limits) -> str:
    """The text with that key of its first document set to a value in flow style.

    The document has to be a mapping with another key.  Raises `Refused`.
    """
    root = next(compose("", text, limits))
    if not isinstance(root, MappingNode):
        raise TypeError("the document is no mapping")
    others = [pair for pair in root.value if pair[0].value != key]
    first = others[0][0].start_mark
    after = ", " if root.flow_style else "\n" + " " * first.column
    edits = [(first.index, first.index, f"{key}: {value}{after}"), *_cuts(root, key)]
    for start, end, found in sorted(edits, reverse=True):
        text = text[:start] + found + text[end:]
    return text


def _cuts(root: MappingNode, key: str) -> list[tuple[int, int, str]]:
    """From each such key to the next one, or to the end of its value."""
    starts = [name.start_mark.index for name, _ in root.value]
    spans = zip(root.value, starts, [*starts[1:], _end(root)], strict=True)
    return [(start, end, "") for (name, _), start, end in spans if name.value == key]


def _end(root: MappingNode) -> int:
    last: Node = root.value[-1][1]
    return int(last.end_mark.index if root.flow_style else root.end_mark.index)
