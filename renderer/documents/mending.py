"""What can still be read of a policy file in which a document is no valid YAML."""

from __future__ import annotations

import re

from renderer.documents.composing import compose
from renderer.documents.limits import Limits
from renderer.documents.refusals import Refused, conflict
from renderer.model import Finding
from renderer.values import Value, replace

# A line that begins so ends whatever stands before it, an open bracket, quote or block as well: YAML 1.2, 9.1.2.
_MARKER = re.compile(r"^(?=---(?:[ \t\r\n]|\Z))", re.MULTILINE)


class Mended(Value, frozen=True):
    """The text with its broken documents left blank, line for line, and what is wrong with each of those."""

    text: str
    findings: list[Finding]


def mend(file: str, text: str, limits: Limits) -> Mended | None:
    """The text without the documents that cannot be read by themselves; `None` where that mends nothing."""
    split = _MARKER.split(text)
    if len(split) > limits.documents + 1 or conflict(file, text):
        return None
    limits = limits if len(text) <= limits.patience else replace(limits, patience=0)
    parts, findings, line = [], [], 0
    for part in split:
        wrong = _wrong(file, part, limits)
        if wrong is not None:
            place = wrong.position
            findings.append(replace(wrong, position=replace(place, line=place.line + line)))
        parts.append(part if wrong is None else "\n" * part.count("\n"))
        line += part.count("\n")
    return Mended("".join(parts), findings) if findings else None


def _wrong(file: str, text: str, limits: Limits) -> Finding | None:
    try:
        for _ in compose(file, text, limits):
            pass
    except Refused as refused:
        return refused.finding
    return None
