"""Findings for people: place, what is wrong, the source line with a caret, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from renderer.model import Finding, Severity, printable
from renderer.report.base import FileChange, Report
from renderer.words import counted

_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.NOTE: "36"}
_CHANGES = {"added": "32", "updated": "33", "removed": "31", "foreign": "36"}
_WIDEST = 160
_CLUSTERS_SHOWN = 12
_FILES_SHOWN = 20


def render(report: Report) -> tuple[str, str]:
    """Findings, each with its source line or difference, and changed files on stdout; the summary on stderr."""
    wanted = set(Severity) - ({Severity.NOTE} if report.brief else set())
    wanted &= {Severity.ERROR} if report.quiet else wanted
    findings = [one for one in report.findings if one.severity in wanted]
    shown, hidden = _shortened(findings)
    differences = {change.path: change.difference for change in report.files or ()}
    out = [line for finding in shown for line in (*_finding(finding, differences, report), "")]
    out += [f"… and {count} more [{code}]" for code, count in hidden.items()]
    told = {finding.position.file for finding in report.findings if finding.code.startswith("overlay/")}
    if not report.quiet:
        out += [_change(change, report) for change in report.files or () if change.path not in told]
    return _joined(out), "" if report.quiet and not findings else _joined([_summary(report)])


def _shortened(findings: list[Finding]) -> tuple[list[Finding], dict[str, int]]:
    """At most so many findings on overlay files of one code: a fleet that was never rendered has thousands."""
    counts: Counter[str] = Counter()
    shown: list[Finding] = []
    for finding in findings:
        counts[finding.code] += 1
        if not finding.code.startswith("overlay/") or counts[finding.code] <= _FILES_SHOWN:
            shown.append(finding)
    hidden = {
        code: count - _FILES_SHOWN
        for code, count in counts.items()
        if code.startswith("overlay/") and count > _FILES_SHOWN
    }
    return shown, hidden


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding, differences: Mapping[str, str], report: Report) -> Iterator[str]:
    place = finding.position
    severity = _painted(f"{finding.severity}:", _COLOURS[finding.severity], report)
    where = f"{printable(place.file)}:{place.line}:{place.column}"
    yield f"{where}: {severity} {printable(finding.message)} [{finding.code}]"
    source = "" if place.file in differences else report.line(place.file, place.line)
    yield from (f"     | {_in_place(line)}" for line in differences.get(place.file, "").splitlines())
    if source and len(source) <= _WIDEST:
        source = _in_place(source)
        yield f"{place.line:>4} | {source}"
        length = max(1, min(place.length, len(source) - place.column + 1))
        pad = "".join("\t" if char == "\t" else " " for char in source[: place.column - 1])
        yield f"     | {pad}{_painted('^' * length, _COLOURS[finding.severity], report)}"
    first, *rest = map(printable, finding.help.split("\n"))
    clusters = f"clusters: {_names(finding.clusters)}." if finding.clusters else ""
    if clusters or first:
        yield f"   {' '.join(filter(None, (clusters, first)))}"
    yield from (f"     {_no_command(line)}" for line in rest)


def _no_command(line: str) -> str:
    """GitHub's runner obeys a line of a log that begins with two colons, also behind blanks."""
    return line.replace("::", "\\x3a:", 1) if line.lstrip().startswith("::") else line


def _in_place(line: str) -> str:
    """A line that leaves the terminal as it is, each character in its place."""
    return line if line.isprintable() else "".join(char if char.isprintable() or char == "\t" else "�" for char in line)


def _names(clusters: tuple[str, ...]) -> str:
    more = len(clusters) - _CLUSTERS_SHOWN
    return ", ".join(map(printable, clusters[:_CLUSTERS_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _change(change: FileChange, report: Report) -> str:
    return f"{_painted(f'{change.change:<8}', _CHANGES.get(change.change, '0'), report)} {printable(change.path)}"


def _summary(report: Report) -> str:
    counts = report.counts
    parts = [counted(counts[severity], severity) for severity in Severity if counts[severity]]
    more = " (check shows the notes)" if report.brief and counts[Severity.NOTE] else ""
    return printable(". ".join(filter(None, (", ".join(parts) + more, report.summary))))


def _painted(text: str, colour: str, report: Report) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m" if report.colour else text
