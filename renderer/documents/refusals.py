"""Texts that cannot be read, and the words for it."""

from __future__ import annotations

import re

from ruamel.yaml.nodes import Node
from ruamel.yaml.reader import ReaderError

from renderer.model import Finding, Position, Severity

LOOKALIKE = re.compile("[\u00a0\u00ad\u034f\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")

_CONFLICT = re.compile(r"^<{7} .*\n(?=[\s\S]*^={7}$[\s\S]*^>{7} )", re.MULTILINE)


class Refused(Exception):
    """The text cannot be read on from here."""

    def __init__(self, code: str, position: Position, message: str, help: str) -> None:
        super().__init__(message)
        self.finding = Finding(code, Severity.ERROR, position, message, help)


def position(file: str, node: Node) -> Position:
    start, end = node.start_mark, node.end_mark
    length = end.column - start.column if end.line == start.line else 1
    return Position(file, start.line + 1, start.column + 1, max(length, 1))


def too_deep(position: Position, limit: int) -> Refused:
    return Refused("policy/limit", position, f"nested more than {limit} levels deep", "Flatten the document.")


def refusal(file: str, error: Exception, text: str) -> Refused:
    if isinstance(error, ReaderError):
        return _control_character(file, text)
    position = _position(file, error, text)
    if found := conflict(file, text) or _lookalike(file, text, position.line):
        return found
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    message = f"{problem}, {context}" if context else str(problem)
    return Refused("policy/syntax", position, f"not valid YAML: {message}", _syntax_help(str(problem)))


def _position(file: str, error: Exception, text: str) -> Position:
    """Where it went wrong; where what was left open begins, or the last line, if that is behind the text."""
    mark, context_mark = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    end = len(text.rstrip())
    if mark is None or (context_mark is not None and mark.index >= end):
        mark = context_mark
    if mark is None:
        return Position(file)
    if mark.index >= end:
        return Position(file, text.count("\n", 0, end) + 1, end - text.rfind("\n", 0, end))
    return Position(file, mark.line + 1, mark.column + 1)


def _control_character(file: str, text: str) -> Refused:
    for number, line in enumerate(text.split("\n"), start=1):
        if found := _CONTROL.search(line):
            message = f"the control character U+{ord(found.group()):04X} is not allowed in YAML"
            position = Position(file, number, found.start() + 1)
            return Refused("policy/encoding", position, message, "Is this a binary file?")
    return Refused("policy/encoding", Position(file), "not a text that YAML allows", "Is this a binary file?")


def conflict(file: str, text: str) -> Refused | None:
    """The first conflict that a merge left in the text."""
    if not (found := _CONFLICT.search(text)):
        return None
    position = Position(file, text.count("\n", 0, found.start()) + 1, 1, 7)
    help = "Keep what is right of the two versions, and remove the three marker lines."
    return Refused("policy/syntax", position, "unresolved merge conflict", help)


def _lookalike(file: str, text: str, number: int) -> Refused | None:
    """A character at the place of a syntax error, or on the line before, that is read as part of a word."""
    lines = text.split("\n")
    for near in (number, number - 1):
        if 0 < near <= len(lines) and (found := LOOKALIKE.search(lines[near - 1])):
            position = Position(file, near, found.start() + 1)
            return Refused("policy/syntax", position, not_a_blank(found.group()), "Replace it with a plain blank.")
    return None


def not_a_blank(character: str) -> str:
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
