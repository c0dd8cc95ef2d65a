"""One JSON object, for programs."""

from __future__ import annotations

import json
from typing import Any

from renderer.model import Finding, Severity
from renderer.report.base import Report


def render(report: Report) -> tuple[str, str]:
    """The findings, the counts, and where files are concerned the changes, on stdout."""
    counts = report.counts
    out: dict[str, Any] = {
        "findings": [_finding(finding) for finding in report.findings],
        "summary": {f"{severity}s": counts[severity] for severity in Severity},
    }
    if report.files is not None:
        out["files"] = [{"path": change.path, "change": change.change} for change in report.files]
    text = json.dumps(out, indent=2, ensure_ascii=False)
    return "\n".join(map(_harmless, text.split("\n"))) + "\n", ""


def _harmless(line: str) -> str:
    """What a terminal would obey, escaped as JSON does it; people's own letters stay."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "file": finding.position.file,
        "line": finding.position.line,
        "column": finding.position.column,
        "message": finding.message,
        "help": finding.help,
        "clusters": list(finding.clusters),
    }
