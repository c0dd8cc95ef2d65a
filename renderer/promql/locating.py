"""The place of a fault that the parser reports without one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import product

from renderer.promql.tokens import Token, tokens, unpaired

SYNTAX = "invalid promql query"
_QUOTED = re.compile(r"'([A-Za-z_:][\w:]*)'")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_GOES_ON = ("", " x", "1", "5m", '"y"', '="y"', ' x="y"', " (x)", " (x) x", "(x)", ", x", ")")
_NO_BEGINNING = (SYNTAX, "unexpected", "unclosed", "unterminated", "bad number")
"""Other messages, as on types and on the number of arguments, mean that the syntax as such could hold."""
_MANY = 200
"""Longer expressions are not searched token by token."""

Check = Callable[[str], str]
"""What the parser says of a text; nothing where it is valid."""


def locate(text: str, message: str, check: Check) -> tuple[int, int]:
    """Where the fault begins and how long it is, in characters; the first line of code where that cannot be told."""
    found = list(tokens(text))
    for place in (_bad, _bracket, _called, _first_said, _named, _misplaced):
        token = place(text, message, found, check)
        if token is not None:
            return token.start, max(len(token.text), 1)
    start = found[0].start if found else 0
    return start, max(len(text[start:].split("\n", 1)[0]), 1)


def _bad(text: str, message: str, found: list[Token], check: Check) -> Token | None:
    del text, message, check
    return next((token for token in found if token.kind == "bad"), None)


def _bracket(text: str, message: str, found: list[Token], check: Check) -> Token | None:
    del text, message, check
    wrong, opened = unpaired(found)
    return wrong or (opened[-1] if opened else None)


def _called(text: str, message: str, found: list[Token], check: Check) -> Token | None:
    """The function that the message names; of several calls, the one of which the parser says the same."""
    names = _QUOTED.findall(message) if "call to" in message else []
    named = [number for number, token in enumerate(found) if token.text in names]
    for number in named if len(named) > 1 else ():
        call = text[found[number].start : _end(found, number)]
        if check(call) == message:
            return found[number]
    return found[named[0]] if named else None


def _first_said(text: str, message: str, found: list[Token], check: Check) -> Token | None:
    """The first token, beyond what is valid by itself, with which the parser says so of the text up to there."""
    if message == SYNTAX or len(found) > _MANY:
        return None
    said = [check(f"{text[: token.end]}{_closing(found[:number])}") for number, token in enumerate(found, 1)]
    valid = max((number for number, words in enumerate(said, 1) if not words), default=0)
    return next((found[number] for number in range(valid, len(found)) if said[number] == message), None)


def _named(text: str, message: str, found: list[Token], check: Check) -> Token | None:
    """What the message names."""
    del text, check
    names = _QUOTED.findall(message)
    return next((token for token in found if token.text in names), None)


def _end(found: list[Token], number: int) -> int:
    """Where the call whose name is the token with that number ends."""
    depth = 0
    for token in found[number + 1 :]:
        depth += (token.text == "(") - (token.text == ")")
        if depth <= 0:
            return token.end
    return found[-1].end


def _misplaced(text: str, message: str, found: list[Token], check: Check) -> Token | None:
    """The first token with which no valid expression begins; the end where all of them could go on."""
    if message != SYNTAX or len(found) > _MANY:
        return None

    def hopeless(number: int) -> bool:
        candidates = _completions(text[: found[number].end], found[: number + 1])
        return all(check(candidate).startswith(_NO_BEGINNING) for candidate in candidates)

    # What goes on behind a beginning that cannot go on does not help either.
    first = bisect_left(range(len(found)), True, key=hopeless)
    return found[first] if first < len(found) else Token("end", "", max(len(text.rstrip()) - 1, 0))


def _completions(start: str, found: list[Token]) -> Iterator[str]:
    closing = _closing(found)
    for more, end in product(_GOES_ON, ("", " x", " (x)", " [5m]", " 5m")):
        yield f"{start}{more}{closing}{end}"


def _closing(found: list[Token]) -> str:
    """The brackets that the tokens leave open, closed."""
    return "".join(_CLOSING[token.text] for token in reversed(unpaired(found)[1]))
