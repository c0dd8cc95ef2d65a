"""Expressions with records in them as what they record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from renderer.promql.tokens import Token, tokens

_DEPTH = 8
"""How many records deep a query is followed."""
_LONGEST = 20_000
"""Characters of a query with its records in it."""


def unfolded(text: str, records: Mapping[str, str]) -> str:
    """The query with each record that it reads replaced by its expression, in brackets."""
    for _ in range(_DEPTH):
        found = list(tokens(text))
        read = [number for number, token in enumerate(found) if _record(found, number) in records]
        for number in reversed(read):
            if len(text) < _LONGEST:
                start, end, range_ = _selector(found, number)
                expr = records[_record(found, number)]
                text = f"{text[:start]}({expr}\n){range_}{text[end:]}"
        if not read:
            break
    return text


def _record(found: Sequence[Token], number: int) -> str:
    """The name that a selector begins with, also as `{__name__="…"}`; empty where none begins."""
    words = [token.text for token in found[number : number + 5]]
    if words[:3] == ["{", "__name__", "="] and words[4:] == ["}"]:
        return words[3][1:-1]
    inside = number > 0 and found[number - 1].text in ("{", "=", "=~")
    return "" if inside or found[number].kind != "name" else words[0]


def _selector(found: Sequence[Token], number: int) -> tuple[int, int, str]:
    """Where a selector begins and ends, and its range, as that of a subquery; what it narrows is of no matter here."""
    at = number + (5 if found[number].text == "{" else 1)
    if at < len(found) and found[at].text == "{" and found[number].text != "{":
        at = next((place for place in range(at, len(found)) if found[place].text == "}"), at) + 1
    range_ = ""
    if at < len(found) and found[at].text == "[":
        end = next((place for place in range(at, len(found)) if found[place].text == "]"), at)
        colon = any(":" in token.text for token in found[at:end])
        inside = " ".join(token.text for token in found[at + 1 : end])
        range_, at = f"[{inside}{'' if colon else ':'}]", end + 1
    while at + 1 < len(found) and found[at].text.lower() in ("offset", "@"):
        at += 3 if found[at + 1].text in ("-", "+") else 2
        if at + 1 < len(found) and found[at].text == "(":  # the brackets of @ end()
            at += 2
    return found[number].start, found[at - 1].end, range_
