"""`render`: writes the overlays."""

from __future__ import annotations

from pathlib import Path

import click

from renderer.commands import options
from renderer.commands.errors import CannotRun
from renderer.report import Report
from renderer.report.base import FileChange
from renderer.tree import CannotWrite, Change, State, write

_WORDS = {
    State.MISSING: "added",
    State.STALE: "updated",
    State.EDITED: "updated",
    State.ORPHANED: "removed",
    State.FOREIGN: "foreign",
}


@click.command("render")
@options.clusters
@options.shared
def command(
    clusters: tuple[str, ...],
    root: Path | None,
    allow_empty: bool,
    output_format: str,
    strict: bool,
    quiet: bool,
    debug: bool,
) -> int:
    """Write the overlays that the policies ask for.

    Files that the policies no longer ask for are removed; files without this tool's header are reported and left.
    An error anywhere in the policies: nothing is written.
    """
    repository = options.open_repository(root)
    outcome = repository.run(allow_empty=allow_empty, only=clusters)
    changes: tuple[Change, ...] = ()
    if not outcome.failed:
        try:
            changes = write(repository.path, outcome.folder, outcome.files, clusters=clusters or None).changes
        except CannotWrite as error:
            raise CannotRun(str(error)) from None
    files = [FileChange(change.path, _WORDS[change.state]) for change in changes]
    report = Report(
        findings=outcome.findings,
        line=options.Lines(repository.tree),
        files=files,
        summary="Nothing was written: mend the errors first."
        if outcome.failed
        else _summary(len(outcome.rendered), files),
        colour=options.coloured(output_format),
        quiet=quiet,
    )
    options.publish(report, output_format)
    return int(report.failed(strict=strict))


def _summary(clusters: int, files: list[FileChange]) -> str:
    changed = sum(change.change != "foreign" for change in files)
    words = f"{changed} file{'s' if changed != 1 else ''} changed" if changed else "nothing changed"
    return f"Rendered {clusters} cluster{'s' if clusters != 1 else ''}: {words}."
