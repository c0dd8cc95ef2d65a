"""`# kubevirt-policy: ignore[code] reason` in a policy file silences a finding on its own line or the next."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from operator import itemgetter

from renderer import documents
from renderer.findings import SEVERITIES
from renderer.model import Finding, Position, Severity
from renderer.values import Value

MARK = b"kubevirt-policy: ignore"
_COMMENT = re.compile(r"(?:^|(?<=\s))#[ \t]*kubevirt-policy: ignore(?:\[([^\]\n]*)\])?[ \t]*([^\n\r]*)")


class _Ignore(Value, frozen=True):
    code: str
    reason: str
    position: Position

    def covers(self, finding: Finding) -> bool:
        place = finding.position
        return (
            finding.code == self.code
            and finding.severity is not Severity.ERROR
            and place.file == self.position.file
            and place.line in (self.position.line, self.position.line + 1)
        )


def apply(findings: Iterable[Finding], texts: Mapping[str, str]) -> list[Finding]:
    """The findings that are left, and findings about ignores that do not work.

    `texts` are the files that may hold such comments.  Errors cannot be ignored.
    """
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_file[finding.position.file].append(finding)
    for file, text in texts.items():
        for ignore in _ignores(file, text):
            kept = by_file[file]
            left = [finding for finding in kept if not ignore.covers(finding)]
            problems = list(_problems(ignore, kept, used=len(left) < len(kept)))
            by_file[file] = [*(left if not problems else kept), *problems]
    return [finding for kept in by_file.values() for finding in kept]


def _ignores(file: str, text: str) -> Iterator[_Ignore]:
    """Comments only: the same words inside a text of the document are no comment."""
    inside = documents.scalar_lines(file, text)
    for number, line in enumerate(text.splitlines(), start=1):
        for found in _COMMENT.finditer(line):
            place = number, found.start() + 1
            before = bisect_right(inside, place, key=itemgetter(0))
            if before == 0 or place >= inside[before - 1][1]:
                position = Position(file, number, found.start() + 1, len(found.group().rstrip()))
                yield _Ignore((found[1] or "").strip(), found[2].strip(), position)


def _problems(ignore: _Ignore, findings: Iterable[Finding], *, used: bool) -> Iterator[Finding]:
    if ignore.code not in SEVERITIES:
        near = get_close_matches(ignore.code, SEVERITIES, 1)
        help = f"Did you mean {near[0]}?" if near else "Write ignore[code] with the code that the finding ends with."
        message = f"there is no finding {ignore.code}" if ignore.code else "the comment does not say what it ignores"
        yield _finding("ignore/unknown", ignore, message, help)
    elif SEVERITIES[ignore.code] is Severity.ERROR or _raised(ignore, findings):
        yield _finding(
            "ignore/unused", ignore, f"{ignore.code} is an error, and errors cannot be ignored", "Mend what it says."
        )
    elif not ignore.reason:
        yield _finding(
            "ignore/no-reason", ignore, f"ignore[{ignore.code}] gives no reason", "Say why after the bracket."
        )
    elif not used:
        message = f"there is no {ignore.code} on this line or the next"
        yield _finding("ignore/unused", ignore, message, "Remove the comment.")


def _raised(ignore: _Ignore, findings: Iterable[Finding]) -> bool:
    """Whether the configuration raised that finding to an error."""
    lines = (ignore.position.line, ignore.position.line + 1)
    return any(
        finding.code == ignore.code
        and finding.severity is Severity.ERROR
        and finding.position.file == ignore.position.file
        and finding.position.line in lines
        for finding in findings
    )


def _finding(code: str, ignore: _Ignore, message: str, help: str) -> Finding:
    return Finding(code, SEVERITIES[code], ignore.position, message, help)
