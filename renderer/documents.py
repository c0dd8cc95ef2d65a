"""YAML text to plain data that remembers the line and column of every field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any

from _ruamel_yaml import CParser  # type: ignore[import-not-found]
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.tag import Tag

from renderer import scalars
from renderer.model import Body, Document, Finding, Path, Position, Severity
from renderer.scalars import Kind
from renderer.values import Value, field

MAX_BYTES = 1 << 20
"""The largest policy file that is read: 1 MiB, some two thousand clusters in one file."""
MAX_FOREIGN_BYTES = 4 << 20
"""The largest manifest of somebody else that is read; big CustomResourceDefinitions fit."""
MAX_DEPTH = 32
MAX_NODES = 20_000


class Limits(Value, frozen=True):
    """How much of one file is read: bytes, levels of nesting, and fields once aliases are expanded."""

    size: int
    depth: int
    nodes: int


_POLICY = Limits(MAX_BYTES, MAX_DEPTH, MAX_NODES)
FOREIGN = Limits(MAX_FOREIGN_BYTES, MAX_DEPTH, 50 * MAX_NODES)
GENERATED = Limits(16 << 20, 128, 200 * MAX_NODES)
"""For what programs write: exported CustomResourceDefinitions, and what kustomize builds."""

_CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}
_STRING_TAG = "tag:yaml.org,2002:str"
# One shared tag for each kind: comparing it by identity is what makes reading a large fleet quick.
_TAGS = {kind: Tag(suffix=kind) for kind in Kind}
_KINDS = {id(tag): kind for kind, tag in _TAGS.items()}
_PLAIN = _TAGS[Kind.STR]
_QUOTED = Tag(suffix=_STRING_TAG)
_COLLECTION = Tag(suffix="")
_LOOKALIKE = re.compile("[\u00a0\u00ad\u034f\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_MERGE = "<<"


class _Composer(CParser):  # type: ignore[misc]
    """libyaml's composer; the tag of an untagged scalar is its `Kind`, decided while composing."""

    def descend_resolver(self, parent: Any, index: Any) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass

    def resolve(self, node: Any, value: str, implicit: Any) -> Tag:
        if node is ScalarNode:
            return _TAGS[scalars.kind(value)] if implicit[0] else _QUOTED
        return _COLLECTION


class Read(Value, frozen=True):
    """What one file holds: its documents, and what is wrong with its text."""

    documents: list[Document] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def read(file: str, data: bytes) -> Read:
    """The documents of a policy file.  Strict: what two YAML readers could take differently is a finding."""
    return _read(file, data, limits=_POLICY, strict=True)


def read_foreign(file: str, data: bytes, limits: Limits = FOREIGN) -> Read:
    """The documents of a manifest that somebody else owns: read as kustomize would, without our rules."""
    return _read(file, data, limits=limits, strict=False)


def _read(file: str, data: bytes, *, limits: Limits, strict: bool) -> Read:
    out = Read()
    try:
        text = _decode(file, data, limits.size)
        source = _Source(file, text, limits.depth)
        for index, node in enumerate(source.compose()):
            builder = _Builder(file, strict=strict, limits=limits)
            plain = builder.build(node)
            out.findings.extend(builder.findings)
            if isinstance(plain, dict):
                out.documents.append(Document(file=file, data=plain, marks=_Marks(source, index)))
            elif plain is not None:
                out.findings.append(_not_a_mapping(file, node, plain))
    except _Refused as refused:
        out.findings.append(refused.finding)
    return out


def scalar_lines(file: str, text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where the scalars of a file begin and end, as (line, column) from 1; none where it is no valid YAML."""
    try:
        roots = list(_Source(file, text).compose())
    except _Refused:
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


class _Refused(Exception):
    """The text cannot be read on from here."""

    def __init__(self, code: str, position: Position, message: str, help: str) -> None:
        super().__init__(message)
        self.finding = Finding(code, Severity.ERROR, position, message, help)


def _decode(file: str, data: bytes, limit: int) -> str:
    if len(data) > limit:
        message = f"the file has {len(data)} bytes; at most {limit} are read"
        raise _Refused("policy/limit", Position(file), message, "Split it into several files.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _Refused("policy/encoding", Position(file), "the file is UTF-16", "Save it as UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise _Refused("policy/encoding", Position(file, line, column), message, "Save the file as UTF-8.") from None


class _Source:
    """The text of one file.  Positions are needed only for findings, so nodes are composed again for them."""

    def __init__(self, file: str, text: str, depth: int = MAX_DEPTH) -> None:
        self.file = file
        self.text = text
        self.depth = depth

    @cached_property
    def nodes(self) -> list[Node]:
        found: list[Node] = []
        with suppress(_Refused):  # what is wrong further down was said on reading
            found.extend(self.compose())
        return found

    def compose(self) -> Iterator[Node]:
        """The root nodes, one for each document that is not empty.  Raises `_Refused`."""
        _refuse_deep(self.file, self.text, self.depth)
        try:
            parser = _Composer(self.text)
            while parser.check_node():
                node = parser.get_node()
                if node.ctag is not _TAGS[Kind.NULL]:
                    yield node
        except (YAMLError, ReaderError, ValueError) as error:
            raise _refusal(self.file, error, self.text) from None


class _Marks:
    __slots__ = ("_index", "_source")

    def __init__(self, source: _Source, index: int) -> None:
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
        return _position(self._source.file, key_node if key_node is not None and (key or block or unseen) else node)


def _child(node: Node, step: str | int) -> tuple[Node | None, Node | None]:
    if isinstance(node, SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
        item = node.value[step]
        return (item.value[0][0] if isinstance(item, MappingNode) and item.value else item), item
    if isinstance(node, MappingNode):
        for name, item in node.value:
            if isinstance(name, ScalarNode) and name.value == step:
                return name, item
    return None, None


def _position(file: str, node: Node) -> Position:
    start, end = node.start_mark, node.end_mark
    length = end.column - start.column if end.line == start.line else 1
    return Position(file, start.line + 1, start.column + 1, max(length, 1))


# libyaml's composer recurses in C, where a hundred thousand brackets end the process: no composing before
# a cheap bound holds for each document, or libyaml's own events have shown that the nesting is harmless.
_DOCUMENT = re.compile(r"^---(?=[ \t\r\n])", re.MULTILINE)
_BRACKETS = 500
_COMPACT = re.compile(r"(?:[-?:][ \t]+){32}")


def _refuse_deep(file: str, text: str, limit: int) -> None:
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
                raise _too_deep(Position(file, start.line + 1, start.column + 1), limit)
    except YAMLError as error:
        raise _refusal(file, error, text) from None


def _few_brackets(text: str) -> bool:
    return text.count("[") + text.count("{") <= _BRACKETS


def _too_deep(position: Position, limit: int) -> _Refused:
    return _Refused("policy/limit", position, f"nested more than {limit} levels deep", "Flatten the document.")


def _refusal(file: str, error: Exception, text: str) -> _Refused:
    if isinstance(error, ReaderError):
        return _control_character(file, text)
    mark, context_mark = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    if mark is None or (context_mark is not None and mark.index >= len(text.rstrip())):
        mark = context_mark  # where what was left open begins
    position = Position(file, mark.line + 1, mark.column + 1) if mark else Position(file)
    if found := _lookalike(file, text, position.line):
        return found
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    message = f"{problem}, {context}" if context else str(problem)
    return _Refused("policy/syntax", position, f"not valid YAML: {message}", _syntax_help(str(problem)))


def _control_character(file: str, text: str) -> _Refused:
    for number, line in enumerate(text.split("\n"), start=1):
        if found := _CONTROL.search(line):
            message = f"the control character U+{ord(found.group()):04X} is not allowed in YAML"
            position = Position(file, number, found.start() + 1)
            return _Refused("policy/encoding", position, message, "Is this a binary file?")
    return _Refused("policy/encoding", Position(file), "not a text that YAML allows", "Is this a binary file?")


def _lookalike(file: str, text: str, number: int) -> _Refused | None:
    """A character at the place of a syntax error, or on the line before, that is read as part of a word."""
    lines = text.split("\n")
    for near in (number, number - 1):
        if 0 < near <= len(lines) and (found := _LOOKALIKE.search(lines[near - 1])):
            position = Position(file, near, found.start() + 1)
            return _Refused("policy/syntax", position, _not_a_blank(found.group()), "Replace it with a plain blank.")
    return None


def _not_a_blank(character: str) -> str:
    return f"U+{ord(character):04X} looks like a blank, or like nothing, but is neither"


def _syntax_help(problem: str) -> str:
    if "cannot start any token" in problem:
        return "Indent with blanks, not with tabs; quote a text that begins with @, %, ` or |."
    if "mapping values" in problem:
        return "Check the indentation, and quote a text that contains ': '."
    if "undefined alias" in problem:
        return "An alias can only name an anchor of the same document, further up."
    if "did not find expected ','" in problem or "unexpected end of stream" in problem:
        return "Close the bracket or the quotes that are open here, with a comma between items."
    return "Check the indentation and the quotes at this place."


def _not_a_mapping(file: str, node: Node, plain: object) -> Finding:
    kind = "a list" if isinstance(plain, list) else "a single value"
    message = f"the document is {kind}, not a mapping"
    return Finding(
        "policy/type", Severity.ERROR, _position(file, node), message, "Begin it with apiVersion: and kind:."
    )


class _Builder:
    """Nodes to plain data, gathering what readers could take differently."""

    def __init__(self, file: str, *, strict: bool, limits: Limits) -> None:
        self.file = file
        self.strict = strict
        self.findings: list[Finding] = []
        self._limits = limits
        self._left = limits.nodes

    def build(self, node: Node, depth: int = 1) -> Any:
        if node.__class__ is ScalarNode:
            return self._scalar(node)
        if depth > self._limits.depth:  # an alias to its own parent ends here as well
            raise _too_deep(_position(self.file, node), self._limits.depth)
        self._left -= len(node.value) + 1
        if self._left < 0:
            message = f"the document has more than {self._limits.nodes} fields once its aliases are expanded"
            raise _Refused("policy/limit", _position(self.file, node), message, "Split it, or use fewer aliases.")
        if node.ctag is not _COLLECTION:
            self._check_tag(node)
        if isinstance(node, MappingNode):
            return self._mapping(node, depth)
        return [self.build(item, depth + 1) for item in node.value]

    def _mapping(self, node: MappingNode, depth: int) -> Body:
        out: Body = {}
        for key_node, item in node.value:
            if key_node.ctag is not _PLAIN or not key_node.value.isascii():
                self._check_key(key_node)
                if key_node.value == _MERGE and not self.strict:
                    merged = self.build(item, depth + 1)
                    for part in merged if isinstance(merged, list) else [merged]:
                        out = {**part, **out} if isinstance(part, dict) else out
                    continue
            key = key_node.value if key_node.__class__ is ScalarNode else ""
            value = self.build(item, depth + 1)
            if key in out:  # the first one counts, for it is the one that marks find
                self._add_duplicate(node, key_node)
            else:
                out[key] = value
        return out

    def _check_key(self, node: Node) -> None:
        if not isinstance(node, ScalarNode):
            self._add("policy/type", node, "a key must be a text", "Write it as a plain word.")
        elif self.strict and node.value == _MERGE and not node.style:
            self._add("policy/syntax", node, "merge keys (<<) are not part of YAML 1.2", "Write the fields out.")
        else:
            self._scalar(node)

    def _scalar(self, node: ScalarNode) -> Any:
        if node.ctag is _QUOTED:
            return node.value
        kind = _KINDS.get(id(node.ctag))
        if kind is None:
            self._check_tag(node)
            is_text = node.tag == _STRING_TAG
            return node.value if is_text else scalars.value(node.value, scalars.kind(node.value))
        if kind is Kind.STR and node.value.isascii():
            return node.value
        if self.strict and kind is Kind.STR:
            self._check_blanks(node)
        if self.strict and kind is Kind.AMBIGUOUS:
            message = f"{_short(node.value)} is read differently by YAML 1.1 and YAML 1.2 readers"
            self._add("policy/ambiguous-scalar", node, message, _unambiguous(_short(node.value)))
        return scalars.value(node.value, kind)

    def _check_tag(self, node: Node) -> None:
        if self.strict and node.tag not in _CORE_TAGS:
            self._add(
                "policy/syntax", node, f"tag {_short(str(node.tag))} is not known", "Remove it: policies need no tags."
            )

    def _check_blanks(self, node: ScalarNode) -> None:
        if found := _LOOKALIKE.search(node.value):
            help = "Replace it with a plain blank, or quote the text."
            self._add("policy/syntax", node, _not_a_blank(found.group()), help)

    def _add_duplicate(self, mapping: MappingNode, node: ScalarNode) -> None:
        first = next(key for key, _ in mapping.value if key.value == node.value)
        message = f"key {_short(node.value)} stands twice in this mapping, first in line {first.start_mark.line + 1}"
        self._add("policy/duplicate-key", node, message, "Remove one of the two.")

    def _add(self, code: str, node: Node, message: str, help: str) -> None:
        self.findings.append(Finding(code, Severity.ERROR, _position(self.file, node), message, help))


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def _unambiguous(plain: str) -> str:
    if plain.lower() in {"y", "yes", "on", "n", "no", "off"}:
        meant = "true" if plain.lower() in {"y", "yes", "on"} else "false"
        return f'Write "{plain}" for a text, or {meant} for a boolean.'
    return f'Write "{plain}" for a text; write a number in plain decimal digits.'
