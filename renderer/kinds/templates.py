"""The texts of alerts, which are templates of Go: what Prometheus refuses of them when it loads a rule.

The grammar is that of text/template/parse of Go 1.25; the variables are those that Prometheus declares (prometheus
v3.16.0 rules/alerting.go).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise

from renderer.promql import Token

MOST = 10
"""Faults that are told of one text."""
_COMMENT = re.compile(r"(?:-\s+)?/\*")
_COMMENT_END = re.compile(r"\*/(?:\s+-)?\}\}")
_PART = re.compile(
    r"""
      (?P<text>"(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\\n]|\\[^\n][0-9a-fA-F]*)')
    | (?P<end>\}\})
    | [^"`'}]+ | [}'"`]
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"""\\(?![abfnrtv\\"']|x[0-9a-fA-F]{2}|[0-7]{3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})""")
_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<text>\0+)
    | (?P<variable>\$\w*)
    | (?P<field>\.[^\W\d]\w*)
    | (?P<number>[-+]?(?:[0-9][\w.]*|\.[0-9]\w*))
    | (?P<word>[^\W\d]\w*)
    | (?P<dot>\.)
    | (?P<declare>:?=(?!=))
    | (?P<pipe>\|(?!\|))
    | (?P<open>\()
    | (?P<close>\))
    | (?P<comma>,)
    """,
    re.VERBOSE,
)
_OPERANDS = ("text", "variable", "field", "number", "word", "dot", "close")
_BETWEEN = ("pipe", "comma", "declare")
_OPENING = ("if", "range", "with", "define", "block")
_BRANCHING = ("if", "range", "with")
_NAMED = ("define", "template", "block")
_ALONE = ("else", "end", "break", "continue")
_WORDS = frozenset((*_OPENING, *_NAMED, *_ALONE, "nil", "true", "false"))
_EMPTY = "Write what to show, or remove it."
_GIVEN = frozenset(("$", "$labels", "$value", "$externalLabels", "$externalURL"))


@dataclass(frozen=True, slots=True)
class Fault:
    """What Prometheus would refuse at `offset`, and what to do."""

    message: str
    help: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Action:
    """What stands between braces, with texts as zero characters and comments as blanks; `offset` is behind `{{`."""

    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Template:
    """Its actions; and where braces are never closed."""

    actions: list[Action] = field(default_factory=list)
    unclosed: int | None = None


@dataclass(slots=True)
class _Block:
    """An open block: its word, where it stands, and the variables that are declared in it."""

    word: str
    offset: int
    declared: set[str]
    branched: bool = False


def read(text: str) -> Template:
    """All actions, in time that grows with the text alone."""
    out, at = Template(), 0
    while (start := text.find("{{", at)) >= 0:
        found = _action(text, start + 2)
        if found is None:
            return Template(out.actions, start)
        out.actions.append(Action(start + 2, found))
        at = start + 2 + len(found) + 2
    return out


def _action(text: str, at: int) -> str | None:
    """What stands before the closing braces; none where they, or the end of a comment, are missing."""
    if _COMMENT.match(text, at):
        closed = _COMMENT_END.match(text, end) if (end := text.find("*/", at)) >= 0 else None
        return " " * (closed.end() - 2 - at) if closed else None
    parts: list[str] = []
    while (part := _PART.match(text, at)) is not None:
        if part["end"]:
            return "".join(parts)
        if part.group() in ('"', "`"):
            return None  # a text that does not end
        parts.append("\0" * len(part.group()) if part["text"] else part.group())
        at = part.end()
    return None


@lru_cache(maxsize=4096)
def functions(text: str) -> dict[str, int]:
    """The functions that it calls, each with the place of its first use; words in what is no template are none."""
    found: dict[str, int] = {}
    for action in read(text).actions:
        tokens = list(_tokens(action))
        for token in () if any(_spelling(text, action, tokens)) else tokens:
            if token.kind == "word" and token.text not in _WORDS:
                found.setdefault(token.text, token.start)
    return found


def faults(text: str) -> list[Fault]:
    """What is no template, in the order of the text; of many faults the first."""
    found = read(text)
    if found.unclosed is not None:
        help = "Close the action with }}, or remove it."
        return [Fault("{{ has no counterpart", help, found.unclosed, 2)]
    return list(islice(_faults(text, found), MOST))


def _faults(text: str, found: Template) -> Iterator[Fault]:
    opened = [_Block("", 0, set(_GIVEN))]
    for action in found.actions:
        if not action.text.strip(" \t\r\n"):
            if not text[action.offset : action.offset + len(action.text)].strip():
                yield Fault("an action says nothing", _EMPTY, action.offset - 2, len(action.text) + 4)
            continue
        tokens = list(_tokens(action))
        wrong = next(_spelling(text, action, tokens), None)
        if wrong is not None:
            yield wrong
        yield from _blocks(tokens, opened, spelled=wrong is None)
    for block in opened[1:][-1:]:
        yield Fault(f"{block.word} has no end", "Write {{ end }} where the block ends.", block.offset, len(block.word))


def _tokens(action: Action) -> Iterator[Token]:
    """Also of what is wrong: each character that begins no token is one, of kind `bad`."""
    text, at = action.text, 0
    if len(text) > 1 and text[0] == "-" and text[1].isspace():
        at = 1
    end = len(text) - 1 if len(text) > 1 and text[-1] == "-" and text[-2].isspace() else len(text)
    while at < end:
        found = _TOKEN.match(text, at, end)
        if found is None:
            yield Token("bad", text[at], action.offset + at)
            at += 1
            continue
        if found.lastgroup != "space":
            yield Token(str(found.lastgroup), found.group(), action.offset + at)
        at = found.end()


def _spelling(text: str, action: Action, tokens: list[Token]) -> Iterator[Fault]:
    """What is wrong with a single action."""
    whole = action.offset - 2, len(action.text) + 4
    if not tokens:
        yield Fault("an action says nothing", _EMPTY, *whole)
        return
    for token in tokens:
        if token.kind == "bad":
            yield _character(token)
        elif token.kind == "text" and text[token.start] in "\"'":
            for escape in _ESCAPE.finditer(text, token.start, token.end):
                help = "Write the text between backticks, or double the backslash."
                yield Fault("a backslash escapes nothing here", help, escape.start(), 2)
    yield from _order(tokens)
    yield from _brackets(tokens)


def _character(token: Token) -> Fault:
    if token.text == "'":
        return Fault("a text stands between double quotes", "Write \"…\" or `…` in place of '…'.", token.start, 1)
    help = "Templates compare with eq, ne, lt, le, gt and ge, and do not compute: let the expression do that."
    return Fault(f"{token.text} is no part of a template", help, token.start, 1)


def _order(tokens: list[Token]) -> Iterator[Fault]:
    """Values that are missing, and such as touch each other."""
    first, last = tokens[0], tokens[-1]
    if first.text in (*_BRANCHING, *_NAMED) and len(tokens) == 1:
        yield Fault(f"{first.text} lacks a value", "Write what it is about.", first.start, len(first.text))
    for token in [first] * (first.kind in _BETWEEN) + [last] * (last.kind in ("comma", "declare")):
        yield Fault(f"a value is missing beside {token.text}", _EMPTY, token.start, len(token.text))
    in_range = first.text == "range"
    for before, token in pairwise(tokens):
        if token.kind == "comma" and not (in_range and before.kind == "variable"):
            yield Fault("arguments stand apart by blanks", "Remove the comma.", token.start, 1)
        elif token.kind == "pipe" and before.kind in ("pipe", "open"):
            yield Fault("a value is missing beside |", _EMPTY, token.start, 1)
        elif _touching(before, token):
            words = f"{before.text}{token.text}".replace("\0", "…")
            yield Fault(f"{words} is no value", "Separate the two by a blank.", token.start, len(token.text))


def _touching(before: Token, token: Token) -> bool:
    """Whether two values stand without a blank between them, where the second is no field of the first."""
    values = before.kind in _OPERANDS and token.kind in (*_OPERANDS[:-1], "open")
    return before.end == token.start and values and (token.kind != "field" or before.kind == "dot")


def _brackets(tokens: list[Token]) -> Iterator[Fault]:
    opened: list[Token] = []
    for before, token in pairwise([Token("", "", 0), *tokens]):
        if token.kind == "open":
            opened.append(token)
        elif token.kind == "close" and not opened:
            yield Fault(") has no counterpart", "Remove it, or open the bracket before it.", token.start, 1)
        elif token.kind == "close":
            if before.kind == "open":
                yield Fault("brackets around nothing", _EMPTY, token.start, 1)
            opened.pop()
    for token in opened[-1:]:
        yield Fault("( has no counterpart", "Close the bracket, or remove it.", token.start, 1)


def _blocks(tokens: list[Token], opened: list[_Block], *, spelled: bool) -> Iterator[Fault]:
    """Follows the blocks; `opened` are those around the action, and what is declared in them."""
    word = tokens[0].text if tokens and tokens[0].kind == "word" else ""
    place = (tokens[0].start, len(word)) if tokens else (0, 0)
    if word in _OPENING:
        if word == "define" and len(opened) > 1:
            yield Fault("define within a block", "Move it to the beginning of the text.", *place)
        opened.append(_Block(word, place[0], set(_GIVEN) if word == "define" else set(opened[-1].declared)))
    elif needed := _missing(word, opened):
        yield Fault(f"{word} without {needed}", "Remove it, or open the block before it.", *place)
        return
    elif word == "else":
        opened[-1].branched = len(tokens) == 1
    if spelled and word != "define":
        yield from _variables(tokens, opened[-1].declared)
    if word == "end":
        opened.pop()


def _missing(word: str, opened: list[_Block]) -> str:
    """What a word needs around it that is not there; empty where nothing is missing."""
    if word in ("break", "continue"):
        return "" if any(block.word == "range" for block in opened) else "range"
    around = opened[-1]
    if word == "else" and around.branched:
        return "if, range or with of its own"
    if word in ("else", "end"):
        return "" if around.word in _BRANCHING or (around.word and word == "end") else "if, range or with"
    return ""


def _variables(tokens: list[Token], declared: set[str]) -> Iterator[Fault]:
    number = next((index for index, token in enumerate(tokens) if token.kind == "declare"), -1)
    declares = number >= 0 and tokens[number].text == ":="
    new = {token.text for token in tokens[:number] if token.kind == "variable"} if declares else set()
    for index, token in enumerate(tokens):
        if token.kind == "variable" and token.text not in declared and index > number:
            help = "There are $labels, $value, $externalLabels, $externalURL, and those declared with := before."
            yield Fault(f"there is no variable {token.text}", help, token.start, len(token.text))
    declared |= new
