"""The tokens of a PromQL expression with their places, also of one that is not valid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<blank>\s+|\#[^\n]*)
    | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
      | (?P<number>
            0[xX][0-9a-fA-F_]+
          | (?:[0-9][0-9_]*)?\.?[0-9][0-9_]*(?:[eE][-+]?[0-9_]+)?(?:ms|[smhdwy])?(?:[0-9]+(?:ms|[smhdwy]))*
        )
    | (?P<name>[a-zA-Z_:][a-zA-Z0-9_:.]*)
    | (?P<mark>=~|!~|!=|==|>=|<=|</|>/|[-+*/%^=<>(){}\[\],:@])
    """,
    re.VERBOSE,
)
_PAIRS = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a text; in PromQL `kind` is string, number, name, mark, or bad for what no token begins with."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(text: str) -> Iterator[Token]:
    """All tokens but blanks and comments; a character that begins none is one of its own, of kind `bad`."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            yield Token("bad", text[at], at)
            at += 1
            continue
        kind = str(found.lastgroup)
        if kind != "blank":
            yield Token(kind, found.group(), at)
        at = found.end()


def place(text: str, name: str) -> tuple[int, int]:
    """Where a name first stands and how long it is, in characters; the first line where it is no word of its own."""
    found = next((token for token in tokens(text) if token.text.strip("\"'`") == name), None)
    return (found.start, len(found.text)) if found else (0, len(text.partition("\n")[0]))


def unpaired(found: list[Token]) -> tuple[Token | None, list[Token]]:
    """The first bracket that closes nothing or the wrong one; else all those that are never closed."""
    opened: list[Token] = []
    for token in found:
        if token.kind != "mark":
            continue
        if token.text in "([{":
            opened.append(token)
        elif token.text in _PAIRS:
            if not opened or opened[-1].text != _PAIRS[token.text]:
                return token, []
            opened.pop()
    return None, opened
