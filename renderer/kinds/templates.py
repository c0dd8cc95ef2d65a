"""The actions between braces in the texts of alerts, which are templates of Go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_PART = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|\'(?:[^\'\\\n]|\\.[0-9a-fA-F]*)\'|\}\}|[^"`\'/}]+|[/}\']', re.DOTALL)
_FIRST = re.compile(r"-?\s*([a-zA-Z]\w*)")
_VARIABLE = re.compile(r"\$\w*")
_DECLARED = re.compile(r"(\$\w+)(?:\s*,\s*(\$\w+))?\s*:?=")
_OPENING = ("if", "range", "with", "define", "block")
_BRANCHING = ("if", "range", "with")
_GIVEN = ("$", "$labels", "$value", "$externalLabels", "$externalURL")
"""The variables that Prometheus declares (prometheus v3.16.0 template/template.go, rules/alerting.go)."""


@dataclass(frozen=True, slots=True)
class Template:
    """Its actions with their places, quoted texts and comments blanked; and where braces have no counterpart."""

    actions: list[tuple[int, str]] = field(default_factory=list)
    stray: int | None = None


def read(text: str) -> Template:
    """All actions, in time that grows with the text alone."""
    out, at = Template(), 0
    while (start := text.find("{{", at)) >= 0:
        stray = text.find("}}", at, start)
        if stray >= 0:
            return Template(out.actions, stray)
        found = _action(text, start + 2)
        if found is None:
            return Template(out.actions, start)
        out.actions.append((start + 2, found))
        at = start + 2 + len(found) + 2
    stray = text.find("}}", at)
    return Template(out.actions, stray if stray >= 0 else None)


def _action(text: str, at: int) -> str | None:
    """What stands before the closing braces; none where they, or the end of a quoted text, are missing."""
    parts: list[str] = []
    while (part := _PART.match(text, at)) is not None:
        found, at = part.group(), part.end()
        if found == "}}":
            return "".join(parts)
        if found == "/" and text.startswith("*", at):
            end = text.find("*/", at)
            if end < 0:
                return None
            found, at = text[at - 1 : end + 2], end + 2
        parts.append(" " * len(found) if (found[0] in "\"`'" and len(found) > 1) or found.startswith("/*") else found)
    return None


@dataclass(frozen=True, slots=True)
class Fault:
    """What Prometheus would refuse at `offset`, and what to do."""

    message: str
    help: str
    offset: int
    length: int


def faults(text: str) -> Iterator[Fault]:
    """Blocks and actions that do not close, variables that nobody declared, and actions that say nothing."""
    found = read(text)
    if found.stray is not None:
        mark = text[found.stray : found.stray + 2]
        yield Fault(f"{mark} has no counterpart", "Close the action, or remove it.", found.stray, 2)
        return
    yield from _blocks(found)
    yield from _variables(found)
    for offset, action in found.actions:
        if not text[offset : offset + len(action)].strip("- \t\r\n"):
            yield Fault("an action says nothing", "Write what to show, or remove it.", offset - 2, len(action) + 4)
        if "'" in action:
            place = offset + action.index("'")
            yield Fault("a text stands between double quotes", "Write \"…\" or `…` in place of '…'.", place, 1)


def _blocks(found: Template) -> Iterator[Fault]:
    opened: list[tuple[str, int]] = []
    ranges = 0
    for offset, action in found.actions:
        first = _FIRST.match(action)
        word, place = (first[1], offset + first.start(1)) if first else ("", offset)
        if word in _OPENING:
            opened.append((word, place))
            ranges += word == "range"
        elif needed := _missing(word, opened[-1][0] if opened else "", ranges):
            yield Fault(f"{word} without {needed}", "Remove it, or open the block before it.", place, len(word))
        elif word == "end":
            ranges -= opened.pop()[0] == "range"
    for word, place in opened[-1:]:
        yield Fault(f"{word} has no end", "Write {{ end }} where the block ends.", place, len(word))


def _missing(word: str, around: str, ranges: int) -> str:
    """What a word needs around it that is not there; empty where nothing is missing."""
    if word in ("break", "continue"):
        return "" if ranges else "range"
    if word in ("else", "end"):
        return "" if around in _BRANCHING or (around and word == "end") else "if, range or with"
    return ""


def _variables(found: Template) -> Iterator[Fault]:
    declared = set(_GIVEN)
    for offset, action in found.actions:
        declared |= {name for match in _DECLARED.finditer(action) for name in match.groups() if name and ":=" in action}
        for match in _VARIABLE.finditer(action):
            if match.group() not in declared:
                help = "There are $labels, $value, $externalLabels, $externalURL, and those declared with :=."
                yield Fault(f"there is no variable {match.group()}", help, offset + match.start(), len(match.group()))
