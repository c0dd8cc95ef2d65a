"""`# kubevirt-policy: ignore[code] reason` in a policy file silences a finding on its own line or the next."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from operator import itemgetter

from renderer import documents
from renderer.findings import SEVERITIES
from renderer.model import Finding, Position, Severity
from renderer.values import Value
from renderer.words import did_you_mean

_NAME = r"k[a-z]*[-_. ]?policy"
MARK = re.compile(rf"#[ \t]*{_NAME}[ \t]*[:\[a-z]".encode(), re.IGNORECASE)
"""Found in every file that may hold such a comment, or what somebody took for one."""
_COMMENT = re.compile(r"(?:^|(?<=\s))#[ \t]*kubevirt-policy[ \t]*:[ \t]*ignore(?:\[([^\]\n]*)\])?[ \t]*([^\n\r]*)")
_NEAR = re.compile(  # bounded: every mark of a long row would be followed to its end
    rf"(?:^|(?<=\s))#[ \t]*(?:#[# \t]{{0,40}})?(?P<name>{_NAME})"
    r"[ \t]*(?P<colon>:?)[ \t]*(?P<word>[a-z]+)[ \t]*(?P<bracket>\[?)[^\n\r]*",
    re.IGNORECASE,
)

_LIKE = 0.7


class _Ignore(Value, frozen=True):
    """A comment; `misspelt` where it only looks like one."""

    code: str
    reason: str
    position: Position
    misspelt: bool = False

    def covers(self, finding: Finding) -> bool:
        place = finding.position
        return (
            finding.code == self.code
            and not self.misspelt
            and finding.severity is not Severity.ERROR
            and place.file == self.position.file
            and place.line in (self.position.line, self.position.line + 1)
        )


def apply(findings: Iterable[Finding], texts: Mapping[str, str], weight: Callable[[str], Severity]) -> list[Finding]:
    """The findings that are left, and findings about ignores that do not work.

    `texts` are the files that may hold such comments, `weight` gives the severity of a code.  Errors cannot be ignored.
    """
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_file[finding.position.file].append(finding)
    for file, text in texts.items():
        for ignore in _ignores(file, text):
            kept = by_file[file]
            left = [finding for finding in kept if not ignore.covers(finding)]
            wrong = _problems(ignore, kept, used=len(left) < len(kept))
            problems = [Finding(code, weight(code), ignore.position, message, help) for code, message, help in wrong]
            by_file[file] = [*(left if not problems else kept), *problems]
    return [finding for kept in by_file.values() for finding in kept]


def _ignores(file: str, text: str) -> Iterator[_Ignore]:
    """Comments only: the same words inside a text of the document are no comment."""
    inside = documents.scalar_lines(file, text)
    for number, line in enumerate(text.splitlines(), start=1):
        for found in _NEAR.finditer(line):
            place = number, found.start() + 1
            before = bisect_right(inside, place, key=itemgetter(0))
            if before == 0 or place >= inside[before - 1][1]:
                position = Position(file, number, found.start() + 1, len(found.group().rstrip()))
                if exact := _COMMENT.match(line, found.start()):
                    yield _Ignore((exact[1] or "").strip(), exact[2].strip(), position)
                elif _meant(found):
                    yield _Ignore("", "", position, misspelt=True)


def _meant(found: re.Match[str]) -> bool:
    """Whether what is not spelled as an ignore was meant to be one, and is no prose that begins with our name."""
    name = SequenceMatcher(None, found["name"].lower(), "kubevirt-policy").ratio()
    word = SequenceMatcher(None, found["word"].lower(), "ignore").ratio()
    return name > _LIKE and (bool(found["bracket"]) or (bool(found["colon"]) and word > _LIKE))


def _problems(ignore: _Ignore, findings: Iterable[Finding], *, used: bool) -> Iterator[tuple[str, str, str]]:
    """The code of a finding, its message and its help."""
    if ignore.misspelt:
        message = "this comment ignores nothing: it is not spelled as one that does"
        yield "ignore/unknown", message, "Write # kubevirt-policy: ignore[code] reason."
    elif ignore.code not in SEVERITIES:
        known = "Write ignore[code] with the code that the finding ends with."
        help = did_you_mean(ignore.code, SEVERITIES) or known
        message = f"there is no finding {ignore.code}" if ignore.code else "the comment does not say what it ignores"
        yield "ignore/unknown", message, help
    elif SEVERITIES[ignore.code] is Severity.ERROR or _raised(ignore, findings):
        yield "ignore/unused", f"{ignore.code} is an error, and errors cannot be ignored", "Mend what it says."
    elif not ignore.reason:
        yield "ignore/no-reason", f"ignore[{ignore.code}] gives no reason", "Say why after the bracket."
    elif not used:
        message = f"there is no {ignore.code} on this line or the next"
        yield "ignore/unused", message, "Remove the comment."


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
