"""Where a character of a YAML scalar stands in its file."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ESCAPED = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)


def within(text: str, start: tuple[int, int], style: str | None, before: str) -> tuple[int, int]:
    """Line and column, from 0, of the character of a scalar's value that comes after `before`.

    `start` is where the scalar begins, `style` its indicator: `|`, `>`, a quote or none.  Folding and indentation
    change blanks only: the n-th character that is none is the same in value and file.
    """
    visible = sum(not char.isspace() for char in before)
    lines = text.split("\n")
    line, column = start
    if style in ("|", ">"):
        line, column = line + 1, 0
    elif style in ("'", '"'):
        column += 1
    while line < len(lines):
        for at, size in _visible(lines[line], column, style):
            if visible == 0:
                return line, at
            visible -= 1
            column = at + size
        line, column = line + 1, 0
    return start


def _visible(line: str, column: int, style: str | None) -> Iterator[tuple[int, int]]:
    """Column and width of each character of a value that is no blank, in the rest of a line."""
    while column < len(line):
        size, blank = 1, line[column].isspace()
        if style == "'" and line.startswith("''", column):
            size = 2
        elif style == '"' and line[column] == "\\":
            found = _ESCAPED.match(line, column)
            size, blank = len(found.group()) if found else 1, line[column + 1 : column + 2] in ("n", "t", " ", "", "r")
        if not blank:
            yield column, size
        column += size
