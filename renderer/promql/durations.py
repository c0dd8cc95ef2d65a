"""Durations that no Prometheus accepts: none at all, or longer than 64 bits of nanoseconds.

The native parser ends in a panic or in an overflow on some of them, so they are found before it sees the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from math import inf

from renderer.promql.tokens import Token

LONGEST = (2**63 - 1) / 1e9
"""Seconds; Go's `time.Duration`, which Prometheus keeps durations in."""
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
_PART = re.compile(r"([0-9]+)(ms|[smhdwy])")
_ZERO = ": a range and the step of a subquery are longer than zero"
_NO_NUMBERS = ("nan", "inf")


def refused(found: list[Token]) -> Iterator[tuple[Token, str]]:
    """Each duration that is none, and what is wrong with it; how far it is written rightly is the parser's matter."""
    end = Token("mark", "", 0)
    for (before, token), (_, after) in pairwise(pairwise([*apart(found), end])):
        offset = before.text.lower() == "offset"
        if before.text == "@" and token.kind == "number" and abs(_seconds(token)) >= 2**63:
            yield token, f"@ {token.text} is beyond the time that Prometheus counts"
        if offset and token.text.lower() in _NO_NUMBERS:
            yield token, f"offset {token.text} is no duration"
        elif offset or before.text == "[" or before.text.endswith(":"):
            seconds = _seconds(token) if token.kind == "number" else 1
            if abs(seconds) > LONGEST:
                yield token, f"{token.text} is longer than Prometheus counts, which is some 292 years"
            elif not seconds and not offset and after.text in ("]", ":"):
                yield token, f"{token.text} is no time{_ZERO}"
            elif before.text == "[" and token.text == "-" and after.kind == "number":
                yield token, f"-{after.text} is no time{_ZERO}"


def apart(found: list[Token]) -> Iterator[Token]:
    """The tokens without signs of offsets and times, and with the colon of a subquery apart from what follows it."""
    for number, token in enumerate(found):
        if token.kind == "name" and token.text.startswith(":") and number and found[number - 1].kind == "number":
            yield Token("mark", ":", token.start)
            if rest := token.text[1:]:
                yield Token("number", rest, token.start + 1)
        elif not (token.text in ("+", "-") and number and found[number - 1].text.lower() in ("offset", "@")):
            yield token


def _seconds(token: Token) -> float:
    parts = _PART.findall(token.text)
    if parts:
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        return float(int(token.text, 16)) if token.text[:2] in ("0x", "0X") else float(token.text)
    except ValueError:  # no number either, as the parser will say
        return 1
    except OverflowError:
        return inf
