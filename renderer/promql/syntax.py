"""Syntax that not every Prometheus knows, and how to say to the parser what it lacks.

`readable` writes an expression so that the parser takes it for one with the same series and labels: regexes and texts
as `regexes` says, trimmed histograms as a comparison that drops nothing, and neither `smoothed` nor `anchored`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from renderer.promql import durations, regexes
from renderer.promql.tokens import Token

_AGGREGATIONS = ("group", "limitk", "limit_ratio")
_AFTER_AGGREGATION = ("(", "by", "without")
_FILLING = ("fill", "fill_left", "fill_right")
_SELECTING = ("smoothed", "anchored")
_TRIMMING = ("</", ">/")
_OPERATORS = """\
+ - * / % ^ == != > < >= <= </ >/ and or unless atan2 bool by without on ignoring offset nan inf"""
_NO_NAMES = frozenset(_OPERATORS.split())
_RENAMED = {"holt_winters": "double_exponential_smoothing"}
"""Functions by the name that the parser has for them."""
_GROUPED = re.compile(
    r"[0-9]+(?:_[0-9]+)*(?:\.[0-9]+(?:_[0-9]+)*)?(?:[eE][-+]?[0-9]+)?|0[xX]_?[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*"
)
_ZERO = re.compile(r"(?:0+(?:ms|[smhdwy]))+")
_NEVER_ZERO = ("[", ":")
_UNIT = re.compile(r"[0-9](?:ms|[smhdwy])")
_NAMING = ("{", "by", "without", "on", "ignoring", "group_left", "group_right")
_BEFORE_DURATIONS = ("[", ":", "offset")
_PLACING = frozenset(("offset", "@"))
_ENDS = ("]", "}")
_NOTHING = Token("mark", "", 0)


@dataclass(frozen=True, slots=True)
class Feature:
    """A piece of syntax by the name that `renderer.releases.prometheus.SYNTAX` has for it, and where it stands."""

    name: str
    offset: int
    length: int


def features(found: list[Token]) -> Iterator[Feature]:
    """What came after the first releases, each time that it is used."""
    for before, token in pairwise([_NOTHING, *durations.apart(found)]):
        if token.kind == "number" and (name := _number(token.text, before.text.lower())):
            yield Feature(name, token.start, len(token.text))
    for number, token in enumerate(found):
        if name := _word(found, number):
            yield Feature(name, token.start, len(token.text))
    yield from (Feature("names in quotes", token.start, len(token.text)) for token in _quoted_names(found))


def _word(found: list[Token], number: int) -> str:
    word = found[number].text.lower()
    before = found[number - 1].text.lower() if number else ""
    after = found[number + 1].text.lower() if number + 1 < len(found) else ""
    if (word in _AGGREGATIONS and after in _AFTER_AGGREGATION) or (word in _FILLING and after == "("):
        return f"{word}()"
    if word in _TRIMMING or word == "atan2" or (word in _SELECTING and _modifies(found, number)):
        return word
    if word == "@":
        return "the modifier @"
    return "a negative offset" if word == "-" and before == "offset" else ""


def _number(text: str, before: str) -> str:
    if "_" in text:
        return "digits in groups"
    units = len(_UNIT.findall(text))
    if units > 1:
        return "durations of several units"
    if before in _BEFORE_DURATIONS:
        return "" if units else "numbers as durations"
    return "durations as numbers" if units else ""


def _quoted_names(found: list[Token]) -> Iterator[Token]:
    """Texts where a name of a metric or label can stand, which were names only before."""
    opened: list[str] = []
    for number, token in enumerate(found):
        if token.text in "([{":
            opened.append(found[number - 1].text.lower() if token.text == "(" and number else token.text)
        elif token.text in ")]}" and opened:
            opened.pop()
        elif token.kind == "string" and opened and opened[-1] in _NAMING and found[number - 1].text in ("{", "(", ","):
            yield token


def _modifies(found: list[Token], number: int) -> bool:
    """Whether a word stands behind a selector, where it is no name."""
    before = [token.text.lower() for token in found[max(number - 3, 0) : number]]
    if not before or (found[number - 1].end == found[number].start and found[number - 1].kind == "number"):
        return False
    if before[-1] == ")":
        return before[0] in ("start", "end")
    if found[number - 1].kind == "number":
        return not _PLACING.isdisjoint(before[:-1])
    name = found[number - 1].kind == "name" and before[-1] not in _NO_NAMES
    return before[-1] in _ENDS or name


def selects_beyond(found: list[Token], opening: int) -> bool:
    """Whether the range whose bracket is the token with that number is `anchored` or `smoothed`."""
    for number in range(opening, len(found)):
        if found[number].text.lower() in _SELECTING and _modifies(found, number):
            return True
        if (
            number > opening
            and found[number].text in ("[", ")", ",")
            and found[number - 2].text not in ("start", "end")
        ):
            return False
    return False


def refused(found: list[Token]) -> Iterator[tuple[Token, str]]:
    """What the parser takes and no Prometheus does: alternatives between braces."""
    depth = 0
    for before, token in pairwise([_NOTHING, *found]):
        depth += (token.text == "{") - (token.text == "}")
        if depth > 0 and token.text.lower() == "or" and before.kind == "string":
            yield token, "or does not stand between matchers: write the selector twice"


def readable(text: str, found: list[Token]) -> str:
    """The expression with what the parser lacks replaced; `found` are its tokens."""
    parts, at = [], 0
    for start, end, instead in sorted([*regexes.replacements(found), *_replacements(found)]):
        parts += [text[at:start], instead]
        at = end
    return "".join([*parts, text[at:]])


def _replacements(found: list[Token]) -> Iterator[tuple[int, int, str]]:
    for number, token in enumerate(found):
        word = token.text.lower()
        if word in _SELECTING:
            yield token.start, token.end, "" if _modifies(found, number) else f"{token.text}_"
        elif token.text in _TRIMMING:
            yield token.start, token.end, "== bool "
        elif token.kind == "number" and _ZERO.fullmatch(token.text):
            yield token.start, token.end, "0" if found[number - 1].text not in _NEVER_ZERO else token.text
        elif token.kind == "number" and _GROUPED.fullmatch(token.text):
            yield token.start, token.end, token.text.replace("_", "")
        elif token.text in _RENAMED and found[number + 1 : number + 2] and found[number + 1].text == "(":
            yield token.start, token.end, _RENAMED[token.text]
