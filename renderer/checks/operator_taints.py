"""Taints of the OpenShift operator's own tainter that nobody removes once it looks on only, or is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from renderer.checks.left_behind import At, clusters, read, untaint
from renderer.kinds.base import Site
from renderer.kinds.soft_taint_spec import CONFIG_FILE, FOLDER
from renderer.model import Document, Origin, Overlay, Problem, Tree
from renderer.releases.descheduler_operator import TABLE, Tainter

FILE = "descheduler/kubedescheduler.yaml"
_EVICTS = "mode: Automatic"
_KEPT = re.compile(r"Prune=false|/prune: disabled")
_SWITCHED = re.compile(r"^ +devEnableSoftTainter: true$", re.MULTILINE)
_PROFILE = re.compile(r"^ *- (Dev)?KubeVirtRelieveAndMigrate$", re.MULTILINE)
"""Both as this tool writes them."""


def operator_left_behind(
    tree: Tree, overlays: str, rendered: Mapping[str, tuple[Overlay, Site | None]]
) -> Iterator[tuple[str, Problem]]:
    """Each cluster whose `KubeDescheduler` goes, or turns from Automatic to Predictive, while taints may be left.

    With another profile, or without the switch, the operator removes its taints itself: in mode Automatic only
    (release-4.18 pkg/operator/target_config_reconciler.go:1597).
    """
    for cluster in clusters(tree, overlays):
        overlay, site = rendered.get(cluster, (Overlay({}), None))
        after = overlay.files.get(FILE)
        if (site is not None and site.platform != "openshift") or _tended(overlay, after):
            continue
        path = f"{overlays}/{cluster}/{FILE}"
        before = read(tree, path).decode("utf-8", "replace")
        gone = after is None
        if _tainted(before, site) and not (gone and _KEPT.search(before)):
            yield cluster, _problem(path, before, gone=gone)


def _tended(overlay: Overlay, after: str | None) -> bool:
    """Whether somebody removes the taints: the operator, or our own job."""
    return f"{FOLDER}/{CONFIG_FILE}.yaml" in overlay.files or (after is not None and f"\n  {_EVICTS}\n" in after)


def _tainted(before: str, site: Site | None) -> bool:
    """Whether the object made the operator taint nodes; a cluster that is gone may have had any release."""
    if f"\n  {_EVICTS}\n" not in before:
        return False
    schemas = site.descheduler.schemas[:1] if site is not None else ()
    by_profile = not any(TABLE[name].tainter is not Tainter.PROFILE for name in schemas)
    return bool(_SWITCHED.search(before) or (by_profile and _PROFILE.search(before)))


def _problem(path: str, before: str, *, gone: bool) -> Problem:
    from renderer.softtaint.taints import TAINTS  # late: hardly ever needed

    when = "once the KubeDescheduler is gone" if gone else "in mode Predictive"
    message = (
        f"the operator's own tainter may have left the taints {' and '.join(TAINTS)} on nodes, "
        f"and nobody removes them {when}"
    )
    first = "Write mode: Predictive with softTaint mode: RemoveOnly first" if gone else "Add softTaint mode: RemoveOnly"
    help = (
        f"{first}, wait until a pass has run, and remove {'all of it' if gone else 'the block'} then. "
        f"Or clean up by hand once this is applied: {untaint()}"
    )
    return Problem(
        "soft-taint/operator-left-behind", Origin(Document(path, {}, At(path, before, _EVICTS))), message, help
    )
