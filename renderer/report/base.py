"""What every format is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from renderer.model import Finding, Severity
from renderer.values import Value


class FileChange(Value, frozen=True):
    """A file that was or would be changed; `difference` is a unified diff for people, or empty."""

    path: str
    change: str
    difference: str = ""


class Report(Value, frozen=True):
    """The result of a command.  `line` gives the text of a source line, or nothing where it cannot be shown.

    `brief` leaves the notes to `check`, for commands that are about something else.
    """

    findings: Sequence[Finding]
    line: Callable[[str, int], str]
    files: Sequence[FileChange] | None = None
    summary: str = ""
    colour: bool = False
    quiet: bool = False
    brief: bool = False

    @property
    def counts(self) -> Counter[Severity]:
        """How many findings there are of each severity."""
        return Counter(finding.severity for finding in self.findings)

    def failed(self, *, strict: bool) -> bool:
        """Whether a finding makes the command fail."""
        return self.counts[Severity.ERROR] > 0 or (strict and self.counts[Severity.WARNING] > 0)


Reporter: TypeAlias = Callable[[Report], tuple[str, str]]
"""A report to what goes to stdout and what goes to stderr."""
