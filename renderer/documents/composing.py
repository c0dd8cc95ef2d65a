"""YAML text to nodes that know their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from _ruamel_yaml import CParser  # type: ignore[import-not-found]
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import Node, ScalarNode
from ruamel.yaml.tag import Tag

from renderer import scalars
from renderer.documents.limits import Limits
from renderer.documents.refusals import Refused, position, refusal, too_deep
from renderer.model import Position
from renderer.scalars import Kind

CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}
STRING_TAG = "tag:yaml.org,2002:str"
# One shared tag for each kind: comparing it by identity is what makes reading a large fleet quick.
TAGS = {kind: Tag(suffix=kind) for kind in Kind}
KINDS = {id(tag): kind for kind, tag in TAGS.items()}
PLAIN = TAGS[Kind.STR]
QUOTED = Tag(suffix=STRING_TAG)
COLLECTION = Tag(suffix="")


class Composer(CParser):  # type: ignore[misc]
    """libyaml's composer; the tag of an untagged scalar is its `Kind`, decided while composing."""

    def descend_resolver(self, parent: Any, index: Any) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass

    def resolve(self, node: Any, value: str, implicit: Any) -> Tag:
        if node is ScalarNode:
            return TAGS[scalars.kind(value)] if implicit[0] else QUOTED
        return COLLECTION


def compose(file: str, text: str, limits: Limits) -> Iterator[Node]:
    """The root nodes, one for each document that is not empty.  Raises `Refused`."""
    depth = limits.depth
    refuse_deep(file, text, depth)
    composed = 0
    try:
        for node in _quickly(file, text, limits.documents):
            composed += 1
            yield node
    except (YAMLError, ValueError) as error:
        if not _colon_in_brackets(error) or len(text) > limits.patience:
            raise refusal(file, error, text) from None
    else:
        return
    try:
        yield from islice(_patiently(text), composed, None)
    except (YAMLError, ValueError) as error:
        raise refusal(file, error, text) from None
    except RecursionError:
        raise too_deep(Position(file), depth) from None


def _quickly(file: str, text: str, limit: int) -> Iterator[Node]:
    parser = Composer(text)
    left = limit  # empty documents count as well: each of them takes its time
    while parser.check_node():
        node = parser.get_node()
        left -= 1
        if left < 0:
            message = f"the file has more than {limit} documents"
            raise Refused("policy/limit", position(file, node), message, "Split it into several files.")
        if node.ctag is not TAGS[Kind.NULL]:
            yield node


def _colon_in_brackets(error: Exception) -> bool:
    """The libyaml that ruamel.yaml ships takes no `{url: https://…}`, which every later YAML reader does."""
    return isinstance(error, MarkedYAMLError) and error.problem == "found unexpected ':'"


def _patiently(text: str) -> Iterator[Node]:
    """The same nodes from ruamel.yaml's own reader, which is some forty times slower; imported only when needed."""
    from ruamel.yaml import YAML
    from ruamel.yaml.resolver import VersionedResolver

    class Resolver(VersionedResolver):
        descend_resolver = Composer.descend_resolver  # type: ignore[assignment]
        ascend_resolver = Composer.ascend_resolver
        resolve = Composer.resolve  # type: ignore[assignment]

    yaml = YAML(typ="safe", pure=True)
    yaml.Resolver = Resolver
    constructor, _ = yaml.get_constructor_parser(text)
    while constructor.composer.check_node():
        node = constructor.composer.get_node()
        if node.ctag is not TAGS[Kind.NULL]:
            yield node


# libyaml's composer recurses in C, where a hundred thousand brackets end the process: no composing before
# a cheap bound holds for each document, or libyaml's own events have shown that the nesting is harmless.
_DOCUMENT = re.compile(r"^---(?=[ \t\r\n])", re.MULTILINE)
_BRACKETS = 500
_COMPACT = re.compile(r"(?:[-?:][ \t]+){32}")


def refuse_deep(file: str, text: str, limit: int) -> None:
    if all(map(_few_brackets, _DOCUMENT.split(text))) and not _COMPACT.search(text):
        return
    depth = 0
    try:
        events = CParser(text)
        while (event := events.get_event()) is not None:
            name = type(event).__name__
            depth += name.endswith("StartEvent") - name.endswith("EndEvent")
            if depth > limit + 2:  # the stream and the document count as well
                start = event.start_mark
                raise too_deep(Position(file, start.line + 1, start.column + 1), limit)
    except YAMLError as error:
        raise refusal(file, error, text) from None


def _few_brackets(text: str) -> bool:
    return text.count("[") + text.count("{") <= _BRACKETS
