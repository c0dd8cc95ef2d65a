"""`check`: findings, and whether the overlays are exactly what the policies render."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

import click

from renderer import header
from renderer.commands import options, tracking
from renderer.commands.errors import CannotRun
from renderer.model import Finding, Position, TreeError
from renderer.pipeline import Settings
from renderer.report import Report
from renderer.report.base import FileChange
from renderer.tree import Change, Comparison, State, compare
from renderer.words import counted

_NOT_COMPARED = "The overlays were not compared: mend the errors first."
_RENDER = "Run kubevirt-policy render and commit the result."
_MESSAGES = {
    State.MISSING: ("overlay/missing", "the policies render this file, and it is not there", _RENDER),
    State.STALE: ("overlay/stale", "the policies now render something else", _RENDER),
    State.EDITED: ("overlay/edited", "the file was changed by hand", f"Change the policies instead. {_RENDER}"),
    State.ORPHANED: ("overlay/orphaned", "no policy renders this file any more", _RENDER),
    State.NEWER: ("overlay/newer", "a newer version of this tool wrote the file", "Install that version."),
}


@click.command("check")
@tracking.option
@options.shared
def command(given: options.Shared, *, tracked: bool) -> int:
    """Check policies, and that the overlays are exactly what they render.

    Writes nothing and needs no kustomize: for pre-commit and CI.
    """
    repository = options.open_repository(given.root)
    outcome = repository.run(allow_empty=given.allow_empty)
    found = Comparison()
    if not outcome.failed:
        try:
            found = compare(repository.path, outcome.folder, outcome.files)
        except TreeError as error:
            raise CannotRun(f"{outcome.folder} cannot be compared: {error}") from None
    told = {change.path for change in found.changes}
    present = [path for path in outcome.files if path not in told] if tracked and not outcome.failed else []
    untracked = list(tracking.untracked(repository, present))
    report = Report(
        findings=[*outcome.findings, *findings(found, repository.settings), *untracked],
        line=options.Lines(repository.tree),
        files=changed(found),
        summary=_summary(len(outcome.rendered), found, untracked) if not outcome.failed else _NOT_COMPARED,
    )
    return options.publish(report, given)


def findings(found: Comparison, settings: Settings) -> Iterator[Finding]:
    """What a comparison says of the overlays."""
    for change in found.changes:
        code, message, help = _words(change)
        yield Finding(code, settings.weight(code), Position(change.path, _first_difference(change)), message, help)
    if found.crlf:
        count = len(found.crlf)
        message = f"{count} rendered file{'s have' if count > 1 else ' has'} CRLF line ends in the work tree"
        help = "Compared as LF. Add `overlays/** text eol=lf` to .gitattributes to keep them as rendered."
        code = "overlay/line-ends"
        yield Finding(code, settings.weight(code), Position(found.crlf[0]), message, help)


def changed(found: Comparison) -> list[FileChange]:
    """The files that a comparison names, with their differences."""
    return [FileChange(change.path, str(change.state), _difference(change)) for change in found.changes]


def _words(change: Change) -> tuple[str, str, str]:
    if change.state is State.EDITED and header.in_conflict(change.before or ""):
        return "overlay/edited", "unresolved merge conflict", f"Resolve those of the policies. {_RENDER}"
    if change.state is not State.FOREIGN:
        return _MESSAGES[change.state]
    reason = change.reason
    if change.blocking:
        return (
            "overlay/in-the-way",
            f"a file must be written here, and something else is in its place: {reason}",
            "Move it away.",
        )
    return (
        "overlay/foreign",
        f"this was not rendered by kubevirt-policy, and is left alone: {reason}",
        "Keep other manifests outside the overlays.",
    )


def _first_difference(change: Change) -> int:
    if change.before is None or change.after is None or change.state is State.NEWER:
        return 1
    before, after = change.before.splitlines(), change.after.splitlines()
    pairs = enumerate(zip(before, after, strict=False), start=1)
    differing = [number for number, (one, other) in pairs if one != other]
    if len(before) != len(after):
        differing.append(max(min(len(before), len(after)), 1))
    # The digest in the header differs whenever anything does; what people look for stands below it.
    return next((number for number in differing if number > header.LINES), (differing or [1])[0])


def _difference(change: Change) -> str:
    if change.before is None or change.after is None:
        return ""
    lines = unified_diff(
        change.before.splitlines(), change.after.splitlines(), "committed", "rendered", lineterm="", n=2
    )
    return "\n".join(lines)


def _summary(clusters: int, found: Comparison, untracked: list[Finding]) -> str:
    if all(change.state is State.FOREIGN and not change.blocking for change in found.changes):
        but = ", but Git does not track them all" if untracked else ""
        return f"The overlays of {counted(clusters, 'cluster')} are what the policies render{but}."
    return "The overlays are not what the policies render."
