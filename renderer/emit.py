"""Plain data to YAML text: byte-stable, and read the same by every YAML reader."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from _ruamel_yaml import CEmitter  # type: ignore[import-not-found]
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.tag import Tag

from renderer import scalars
from renderer.model import Body
from renderer.scalars import Kind

_FIRST = {key: rank for rank, key in enumerate(("apiVersion", "kind", "metadata", "spec"))}
# One shared tag for each type of node: a tag of its own for every node takes longer than all the rest.
_STR, _SEQ, _MAP = (Tag(suffix=f"tag:yaml.org,2002:{name}") for name in ("str", "seq", "map"))
_IMPLICIT = {ScalarNode: str(_STR), SequenceNode: str(_SEQ), MappingNode: str(_MAP)}


def yaml(body: Body | list[Any]) -> str:
    """One document: top-level keys in Kubernetes order, all others alphabetical, lists as given.

    Strings that any reader could take for something else are quoted; nothing is folded or anchored.
    Raises `TypeError` for values that JSON does not have.
    """
    out = io.StringIO()
    emitter = _Emitter(out)
    emitter.open()
    emitter.serialize(_top(body))
    emitter.close()
    return out.getvalue()


def remembered(body: Body | list[Any]) -> str:
    """The same, for objects that many clusters have alike: making the text takes far longer than comparing."""
    return _remembered(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


@lru_cache(maxsize=512)
def _remembered(text: str) -> str:
    return yaml(json.loads(text))


class _Emitter(CEmitter):  # type: ignore[misc]
    def __init__(self, stream: io.StringIO) -> None:
        CEmitter.__init__(self, stream, width=-1, allow_unicode=True, indent=2)

    def descend_resolver(self, parent: Any, index: Any) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass

    def resolve(self, node: Any, value: Any, implicit: Any) -> str:
        return _IMPLICIT[node]


def _top(body: Body | list[Any]) -> Node:
    if isinstance(body, list):
        return _node(body)
    return _mapping(sorted(body.items(), key=lambda item: (_FIRST.get(item[0], len(_FIRST)), item[0])))


def _mapping(items: Iterable[tuple[str, Any]]) -> MappingNode:
    pairs = [(_text(key), _node(value)) for key, value in items]
    return MappingNode(_MAP, pairs, flow_style=not pairs)


def _node(value: Any) -> Node:
    match value:
        case bool():
            return _scalar("true" if value else "false")
        case int():
            return _scalar(str(value))
        case str():
            return _text(value)
        case dict():
            return _mapping(sorted(value.items()))
        case list() | tuple():
            return SequenceNode(_SEQ, [_node(item) for item in value], flow_style=not value)
        case _:
            raise TypeError(f"{type(value).__name__} has no place in a manifest")


def _scalar(plain: str) -> ScalarNode:
    return ScalarNode(_STR, plain, style="")


def _text(text: str) -> ScalarNode:
    if "\n" in text and _fits_block(text):
        return ScalarNode(_STR, text, style="|")
    if not text.isprintable():
        return ScalarNode(_STR, text, style='"')
    quote = "'" if '"' in text else '"'
    return ScalarNode(_STR, text, style="" if scalars.kind(text) is Kind.STR else quote)


def _fits_block(text: str) -> bool:
    """Whether a literal block keeps the text as it is for every reader: no trailing blanks, tabs or odd ends."""
    lines = text.removesuffix("\n").split("\n")
    plain = all(line == line.rstrip() and line.isprintable() for line in lines)
    return plain and not text.endswith("\n\n") and not lines[0].startswith(" ") and lines[0] != ""
