"""How messages write names, numbers and long texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable

LONGEST = 60
"""How many characters of a text a message shows."""
MOST = 10
"""How many names a message lists."""


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning and three dots, which count."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def shown(value: object) -> str:
    """A value as a message shows it: short, and on one line."""
    text = str(value)
    return shortened(text if text.isprintable() else repr(text)[1:-1])


def plural(noun: str, count: int) -> str:
    """`file`, or `files` unless there is one."""
    return noun if count == 1 else f"{noun}s"


def counted(count: int, noun: str) -> str:
    """`1 file`, `3 files`."""
    return f"{count} {plural(noun, count)}"


def listed(names: Iterable[str], most: int = MOST) -> str:
    """`a`, `a and b`, `a, b and c`; of many the first, and how many more."""
    *head, last = names
    if len(head) > most:
        head, last = head[:most], f"{len(head) + 1 - most} more"
    return f"{', '.join(head)} and {last}" if head else last


def did_you_mean(word: str, known: Collection[str]) -> str:
    """`Did you mean X?`, or nothing where no known word is near."""
    from difflib import get_close_matches  # late: most runs have no mistake

    by_case = {name.lower(): name for name in known}
    near = [by_case[word.lower()]] if word.lower() in by_case else get_close_matches(word, known, 1)
    return f"Did you mean {near[0]}?" if near else ""
