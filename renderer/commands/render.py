"""`render`: writes the overlays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from renderer.commands import options, tracking
from renderer.commands.errors import CannotRun
from renderer.model import Finding, Position, Severity
from renderer.pipeline import Outcome
from renderer.report import Report
from renderer.report.base import FileChange
from renderer.tree import CannotWrite, Change, State, write
from renderer.words import counted

_NOT_WRITTEN = "Nothing was written: mend the errors first."
_WORDS = {
    State.MISSING: "added",
    State.STALE: "updated",
    State.EDITED: "updated",
    State.ORPHANED: "removed",
    State.FOREIGN: "foreign",
}


@click.command("render")
@options.clusters
@click.option("--fail-on-change", is_flag=True, help="Exit 1 where a file was added, updated or removed.")
@tracking.option
@options.shared
def command(given: options.Shared, clusters: tuple[str, ...], *, fail_on_change: bool, tracked: bool) -> int:
    """Write the overlays that the policies ask for.

    Files that the policies no longer ask for are removed; files without this tool's header are reported and left.
    An error anywhere in the policies: nothing is written.
    """
    repository = options.open_repository(given.root)
    options.progress("Reading the policies", given)
    outcome = repository.run(allow_empty=given.allow_empty, only=clusters)
    changes: tuple[Change, ...] = ()
    if not outcome.failed:
        options.progress(f"Writing the overlays of {counted(len(clusters or outcome.rendered), 'cluster')}", given)
        try:
            changes = write(repository.path, outcome.folder, outcome.files, clusters=clusters or None).changes
        except CannotWrite as error:
            raise CannotRun(str(error)) from None
    files = [FileChange(change.path, _WORDS[change.state]) for change in changes]
    present = outcome.files_of(clusters or outcome.rendered) if tracked and not outcome.failed else ()
    report = Report(
        findings=[
            *outcome.findings,
            *_left_behind(changes, outcome, repository.settings.weight(_LEFT)),
            *tracking.untracked(repository, present),
        ],
        line=options.Lines(repository.tree),
        files=files,
        brief=True,
        summary=_summary(len(clusters or outcome.rendered), files) if not outcome.failed else _NOT_WRITTEN,
    )
    code = options.publish(report, given)
    if fail_on_change and _changed(files):
        click.echo(f"Commit the changed overlays: git add {outcome.folder}", err=True)
        return 1
    return code


def _changed(files: list[FileChange]) -> int:
    return sum(change.change != "foreign" for change in files)


_DESCHEDULERS = ("/descheduler/kubedescheduler.yaml", "/descheduler/deployment.yaml")
_PRESSURE = "-psi-karg.yaml"
_LEFT = "rebalance/left-behind"
_ITS_RULES = "recording-rules/kubevirt-policy-load-aware.yaml"


def _left_behind(changes: Sequence[Change], outcome: Outcome, severity: Severity) -> Iterator[Finding]:
    """Deschedulers and MachineConfigs whose file is gone, and that nothing here removes from the cluster."""
    gone = {change.path for change in changes if change.state is State.ORPHANED}
    for change in changes:
        if change.path in gone and change.path.endswith(_DESCHEDULERS):
            overlay = change.path.rpartition("/descheduler/")[0]
            kept = any(words in (change.before or "") for words in ("Prune=false", "/prune: disabled"))
            reason = _KEPT if kept else _unmanaged(outcome, overlay.rpartition("/")[2])
            if reason:
                yield _kept(change.path, severity, reason, blind=f"{overlay}/{_ITS_RULES}" in gone)
        if change.path in gone and change.path.endswith(_PRESSURE):
            yield _tuned(change.path, severity)


_KEPT = "onRemoval: Keep left it in the cluster"


def _unmanaged(outcome: Outcome, cluster: str) -> str:
    """That no engine is known which would delete anything; empty where there is one, or the cluster is gone."""
    rendered = outcome.rendered.get(cluster)
    none = rendered is not None and rendered.site is not None and rendered.site.engine == "none"
    return "with engine none it stays in the cluster unless something of your own deletes it" if none else ""


def _tuned(path: str, severity: Severity) -> Finding:
    """Kept by an engine's annotation; without an engine nothing removes it either."""
    name = path.rpartition("/")[2].removesuffix(".yaml")
    message = "no policy renders this any more, and it stays in the cluster: its nodes keep psi=1, and do not reboot"
    help = (
        "That does no harm. To take it away, in a maintenance window because every node of the pool reboots again: "
        f"oc delete machineconfig {name}"
    )
    return Finding(_LEFT, severity, Position(path), message, help)


def _kept(path: str, severity: Severity, reason: str, *, blind: bool) -> Finding:
    effect = "it finds no load without its recording rules, which go as well" if blind else "it goes on evicting"
    message = f"no policy renders this any more, and {reason}: {effect}"
    help = "Delete the object there, or restore the policy with mode: Predictive first."
    return Finding(_LEFT, severity, Position(path), message, help)


def _summary(clusters: int, files: list[FileChange]) -> str:
    changed = _changed(files)
    words = f"{counted(changed, 'file')} changed" if changed else "nothing changed"
    return f"Rendered {counted(clusters, 'cluster')}: {words}."
