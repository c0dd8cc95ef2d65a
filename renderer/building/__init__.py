"""Every overlay built by the real kustomize, and what it gave held against what was rendered."""

from __future__ import annotations

from collections.abc import Iterable

from renderer.building.judging import Judge
from renderer.building.running import Progress, Workplace, run
from renderer.building.targets import targets
from renderer.crds import Definitions
from renderer.model import Finding
from renderer.pipeline import Outcome

__all__ = ["Progress", "Workplace", "prove"]


def prove(outcome: Outcome, only: Iterable[str], given: Definitions, work: Workplace) -> list[Finding]:
    """Builds the overlays of the clusters, all of them where none is named, and tells what is wrong.

    `given` are definitions for every cluster; a cluster's own come before them.  The overlays on disk must be what
    the outcome rendered.  Raises `kustomize.Missing` where the program cannot be started.
    """
    wanted = targets(outcome, only)
    built = run({one for target in wanted for one in target.builds}, work)
    judge = Judge(work, built, given)
    for target in wanted:
        judge.hear(target)
    return judge.findings()
