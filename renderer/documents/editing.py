"""One key of a text in place of another, with the rest of the text as it stands."""

from __future__ import annotations

from ruamel.yaml.nodes import MappingNode, Node

from renderer.documents.composing import compose
from renderer.documents.limits import Limits


def with_key(text: str, key: str, value: str, limits: Limits) -> str:
    """The text with that key of its first document set to a value in flow style, and every other line where it was.

    The document has to be a mapping with another key.  Raises `Refused`.
    """
    root = next(compose("", text, limits))
    if not isinstance(root, MappingNode):
        raise TypeError("the document is no mapping")
    edits = [(start, end, "" if root.flow_style else _emptied(text[start:end])) for start, end in _cuts(root, key)]
    edits.append(_flow(root, key, value) if root.flow_style else _block(root, text, f"{key}: {value}"))
    for start, end, found in sorted(edits, reverse=True):
        text = text[:start] + found + text[end:]
    return text


def _emptied(lines: str) -> str:
    """As many empty lines, and the blanks before what follows."""
    last = lines.rpartition("\n")[2]
    return "\n" * lines.count("\n") + ("" if last.strip() else last)


def _flow(root: MappingNode, key: str, value: str) -> tuple[int, int, str]:
    first = next(name for name, _ in root.value if name.value != key).start_mark
    return first.index, first.index, f"{key}: {value}, "


def _block(root: MappingNode, text: str, line: str) -> tuple[int, int, str]:
    """Behind everything else, so that the lines before keep their numbers."""
    end = _end(root)
    before = "" if text[:end].endswith("\n") else "\n"
    return end, end, f"{before}{' ' * root.value[0][0].start_mark.column}{line}\n"


def _cuts(root: MappingNode, key: str) -> list[tuple[int, int]]:
    """From each such key to the next one, or to the end of its value."""
    starts = [name.start_mark.index for name, _ in root.value]
    spans = zip(root.value, starts, [*starts[1:], _end(root)], strict=True)
    return [(start, end) for (name, _), start, end in spans if name.value == key]


def _end(root: MappingNode) -> int:
    last: Node = root.value[-1][1]
    return int(last.end_mark.index if root.flow_style else root.end_mark.index)
