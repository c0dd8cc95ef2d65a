"""`build`: kustomize on the overlays, and proof of what each patch changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from renderer import building, crds
from renderer.building import Workplace
from renderer.commands import check, options
from renderer.commands.errors import CannotRun
from renderer.commands.options import Repository
from renderer.kustomize import Kustomize, Missing, find
from renderer.model import Finding, Severity, TreeError
from renderer.pipeline import Outcome
from renderer.report import Report
from renderer.report.base import FileChange
from renderer.tree import DiskTree, compare
from renderer.words import counted


@click.command("build")
@options.clusters
@click.option(
    "--crds",
    "definitions",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="CustomResourceDefinitions to validate against; those that a Cluster names come before them.",
)
@click.option("--kustomize", "program", metavar="PATH", help="A kustomize, or a kubectl. Default: the one installed.")
@click.option("--jobs", type=click.IntRange(1, 256), help="Builds at one time; default: one for each processor.")
@options.shared
def command(
    given: options.Shared, clusters: tuple[str, ...], definitions: Path | None, program: str | None, jobs: int | None
) -> int:
    """Run kustomize on the overlays and prove what each patch changes.

    Every overlay has to build in silence, to what the policies render; a patch may change the operator object alone,
    and in it the intended fields alone. With CustomResourceDefinitions, every object is validated as server-side
    apply would do it. Nothing is built while the overlays are not what the policies render.
    """
    repository = options.open_repository(given.root)
    outcome = repository.run(allow_empty=given.allow_empty, only=clusters)
    findings, files = _check(repository, outcome, clusters)
    summary = "Nothing was built: mend the errors first."
    if not any(finding.severity is Severity.ERROR for finding in findings):
        work = Workplace(
            root=repository.path,
            tree=repository.tree,
            settings=repository.settings,
            kustomize=_find(program),
            jobs=jobs or os.cpu_count() or 1,
            progress=lambda done, total: options.progress(
                f"Building: {done} of {total}" if done < total else "", given
            ),
        )
        proved = _prove(outcome, clusters, definitions, work)
        findings += proved
        summary = _summary(len(clusters or outcome.rendered), work.kustomize, proved)
    lines = options.Lines(repository.tree)
    return options.publish(Report(findings=findings, line=lines, files=files, summary=summary), given)


def _check(
    repository: Repository, outcome: Outcome, clusters: Sequence[str]
) -> tuple[list[Finding], list[FileChange] | None]:
    """What `check` finds, but for notes.  What is built lies on disk, so that has to be what the policies render."""
    told = [finding for finding in outcome.findings if finding.severity is not Severity.NOTE]
    if outcome.failed:
        return told, None
    try:
        found = compare(repository.path, outcome.folder, outcome.files, clusters=clusters or None)
    except TreeError as error:
        raise CannotRun(f"{outcome.folder} cannot be compared: {error}") from None
    return [*told, *check.findings(found, repository.settings)], check.changed(found)


def _find(program: str | None) -> Kustomize:
    try:
        return find(program, os.environ, Path(sys.executable).parent)
    except Missing as missing:
        raise CannotRun(str(missing)) from None


def _prove(outcome: Outcome, clusters: Sequence[str], folder: Path | None, work: Workplace) -> list[Finding]:
    try:
        return building.prove(outcome, clusters, _given(folder), work)
    except Missing as missing:
        raise CannotRun(str(missing)) from None


def _given(folder: Path | None) -> crds.Definitions:
    if folder is None:
        return {}
    exported = crds.read(DiskTree(folder.resolve()), "")
    if exported.unusable:
        raise CannotRun(f"--crds {folder}: {exported.unusable[0]}")
    return exported.definitions


def _summary(clusters: int, kustomize: Kustomize, findings: Sequence[Finding]) -> str:
    overlays = counted(clusters, "overlay")
    if any(finding.severity is Severity.ERROR for finding in findings):
        return f"Built {overlays} with {kustomize.name}: not all is as it was rendered."
    return f"Built {overlays} with {kustomize.name}: as rendered, and no patch changes more than it should."
