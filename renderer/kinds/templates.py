"""The actions between braces in the texts of alerts, which are templates of Go."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PART = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|\}\}|[^"`/}]+|[/}]', re.DOTALL)


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
        parts.append(" " * len(found) if found[0] in '"`' or found.startswith("/*") else found)
    return None
