"""Nodes to plain data, gathering what two YAML readers could take differently."""

from __future__ import annotations

from typing import Any

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from renderer import scalars
from renderer.documents.composing import COLLECTION, CORE_TAGS, KINDS, PLAIN, QUOTED, STRING_TAG
from renderer.documents.limits import Limits
from renderer.documents.refusals import LOOKALIKE, Refused, not_a_blank, position, too_deep
from renderer.model import Body, Finding, Severity
from renderer.scalars import Kind
from renderer.words import shortened

_MERGE = "<<"


class Builder:
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
            raise too_deep(position(self.file, node), self._limits.depth)
        self._left -= len(node.value) + 1
        if self._left < 0:
            message = f"the document has more than {self._limits.nodes} fields once its aliases are expanded"
            raise Refused("policy/limit", position(self.file, node), message, "Split it, or use fewer aliases.")
        if node.ctag is not COLLECTION:
            self._check_tag(node)
        if isinstance(node, MappingNode):
            return self._mapping(node, depth)
        return [self.build(item, depth + 1) for item in node.value]

    def _mapping(self, node: MappingNode, depth: int) -> Body:
        out: Body = {}
        for key_node, item in node.value:
            if key_node.ctag is not PLAIN or not key_node.value.isascii():
                self._check_key(key_node)
                if key_node.value == _MERGE and not self.strict:
                    merged = self.build(item, depth + 1)
                    for part in merged if isinstance(merged, list) else [merged]:
                        out = {**part, **out} if isinstance(part, dict) else out
                    continue
            value = self.build(item, depth + 1)
            key = key_node.value
            if key_node.__class__ is not ScalarNode:  # refused above; two of them are not compared
                continue
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
        if node.ctag is QUOTED:
            return node.value
        kind = KINDS.get(id(node.ctag))
        if kind is None:
            self._check_tag(node)
            is_text = node.tag == STRING_TAG
            return node.value if is_text else scalars.value(node.value, scalars.kind(node.value))
        if kind is Kind.STR and node.value.isascii():
            return node.value
        if self.strict and kind is Kind.STR:
            self._check_blanks(node)
        if self.strict and kind is Kind.AMBIGUOUS:
            self._add(*_ambiguous(node))
        return scalars.value(node.value, kind)

    def _check_tag(self, node: Node) -> None:
        if self.strict and node.tag not in CORE_TAGS:
            message = f"tag {shortened(str(node.tag))} is not known"
            self._add("policy/syntax", node, message, "Remove it: policies need no tags.")

    def _check_blanks(self, node: ScalarNode) -> None:
        if found := LOOKALIKE.search(node.value):
            help = "Replace it with a plain blank, or quote the text."
            self._add("policy/syntax", node, not_a_blank(found.group()), help)

    def _add_duplicate(self, mapping: MappingNode, node: ScalarNode) -> None:
        first = next(key for key, _ in mapping.value if key.value == node.value)
        message = f"key {shortened(node.value)} stands twice in this mapping, first in line {first.start_mark.line + 1}"
        self._add("policy/duplicate-key", node, message, "Remove one of the two.")

    def _add(self, code: str, node: Node, message: str, help: str) -> None:
        self.findings.append(Finding(code, Severity.ERROR, position(self.file, node), message, help))


def _ambiguous(node: ScalarNode) -> tuple[str, Node, str, str]:
    shown = shortened(node.value)
    if scalars.overflows(node.value):
        help = "Write a smaller number, or quote it where a text is meant."
        return "policy/value", node, f"{shown} is too large: not every reader holds whole numbers of that size", help
    message = f"{shown} is read differently by YAML 1.1 and YAML 1.2 readers"
    return "policy/ambiguous-scalar", node, message, _unambiguous(shown)


def _unambiguous(plain: str) -> str:
    if plain.lower() in {"y", "yes", "on", "n", "no", "off"}:
        meant = "true" if plain.lower() in {"y", "yes", "on"} else "false"
        return f'Write "{plain}" for a text, or {meant} for a boolean.'
    return f'Write "{plain}" for a text; write a number in plain decimal digits.'
