"""What every format is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from renderer.model import Finding, Severity


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that was or would be changed; `difference` is a unified diff for people, or empty."""

    path: str
    change: str
    difference: str = ""


@dataclass(frozen=True, slots=True)
class Report:
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
    counts: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        counted = Counter(str(finding.severity) for finding in self.findings)
        object.__setattr__(self, "counts", counted)

    def failed(self, *, strict: bool) -> bool:
        """Whether a finding makes the command fail."""
        return self.counts[Severity.ERROR] > 0 or (strict and self.counts[Severity.WARNING] > 0)


Reporter: TypeAlias = Callable[[Report], tuple[str, str]]
"""A report to what goes to stdout and what goes to stderr."""
