"""The regular expressions of an expression, judged by RE2, whose dialect Prometheus takes, and kept from the parser.

The parser judges them by Rust's dialect, which refuses what RE2 knows and the other way round, and it reads
backslashes in texts between backticks, where PromQL has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

from renderer.promql.tokens import Token

_MATCHING = ("=~", "!~")
_TAKING = "label_replace"
"""The function whose last argument is one."""
_BYTE = re.compile(r"(?:[^\\]|\\[^C])*\\C", re.DOTALL)
_LOADING = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def refused(found: list[Token]) -> Iterator[tuple[Token, str]]:
    """Each text that is no regular expression, and what is wrong with it."""
    for token in _regexes(found):
        pattern = _value(token)
        if pattern is not None and (wrong := _wrong(pattern)):
            yield token, f"illegal regex: {wrong}"


def replacements(found: list[Token]) -> Iterator[tuple[int, int, str]]:
    """Where the parser would misread a text, and what says the same to it; of a regex, whether it matches nothing."""
    regexes = {token.start for token in _regexes(found)}
    for token in found:
        if token.kind == "string" and (token.start in regexes or token.text[0] == "`"):
            value = _value(token)
            if value is not None:
                yield token.start, token.end, _stand_in(value) if token.start in regexes else _quoted(value)


def _regexes(found: list[Token]) -> Iterator[Token]:
    yield from (token for before, token in pairwise(found) if token.kind == "string" and before.text in _MATCHING)
    names: list[str] = []
    for number, token in enumerate(found):
        before = found[number - 1] if number else token
        if token.text == "(":
            names.append(before.text)
        elif token.text == ")" and names and names.pop() == _TAKING and before.kind == "string":
            yield before


@lru_cache(maxsize=1024)
def _stand_in(pattern: str) -> str:
    """Selectors have to match something other than the absence of a label, which the parser looks for."""
    import re2

    return '""' if not _wrong(pattern) and re2.compile(pattern, _options()).fullmatch("") else '"x"'


def _value(token: Token) -> str | None:
    """The text without its quotes and escapes; None where the parser will say what is wrong with it."""
    import promql_parser

    if token.text[0] == "`":
        return token.text[1:-1]
    try:
        literal: Any = promql_parser.parse(token.text)
    except ValueError:
        return None
    return str(literal.val)


def _quoted(value: str) -> str:
    return '"' + "".join(_LOADING.get(one, one) for one in value) + '"'


@lru_cache(maxsize=1024)
def _wrong(pattern: str) -> str:
    """What RE2 says; empty where it takes the pattern, as does Go, which has no `\\C`."""
    import re2

    if _BYTE.match(pattern):
        return "invalid escape sequence: \\C"
    try:
        re2.compile(pattern, _options())
    except re2.error as error:
        said = error.args[0]
        return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return ""


@lru_cache(maxsize=1)
def _options() -> object:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    options.never_capture = True
    return options
