"""Who taints on OpenShift: our job, or the operator's own tainter; never both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from renderer.kinds.rebalance_spec import RebalanceSpec
from renderer.kinds.soft_taint_spec import BESIDE_THE_MODE, SoftTaint
from renderer.model import Origin, Problem
from renderer.releases.descheduler_operator import Schema, Tainter

_WHEREVER = "the operator deploys its own tainter wherever such a taint is left"


def operator_taints(taint: SoftTaint, known: Sequence[Schema]) -> bool:
    """Whether the operator's tainter does the work, by its switch, which later releases do not need and ignore."""
    return taint.mode == "Enforce" and bool(known) and known[0].tainter is Tainter.SWITCH


def two_tainters(spec: RebalanceSpec, taint: SoftTaint, at: Origin, known: Sequence[Schema]) -> Iterator[Problem]:
    """Releases with a tainter of their own, now or after the upgrade."""
    if not known or known[-1].tainter is Tainter.NONE:
        return
    now, last = known[0], known[-1]
    place = at.below("mode")
    if now.tainter is Tainter.NONE:
        yield from _before_hand_over(taint, last, place)
    elif taint.mode == "RemoveOnly":
        if spec.mode == "Automatic":
            message = f"{now.title} removes these taints itself in mode Automatic: {_WHEREVER}"
            help = "Remove softTaint. RemoveOnly is for mode Predictive, in which the operator leaves them as they are."
            yield Problem("soft-taint/two-tainters", place, message, help)
    elif operator_taints(taint, known):
        yield from _switch(spec, now, at)
    elif now.tainter is Tainter.SWITCH:
        message = f"{now.title} has a tainter of its own, which knows no dry run; ours beside it would be the second"
        yield Problem("soft-taint/two-tainters", place, message, "Write mode: Enforce, or remove softTaint.")
    else:
        runs = "runs its own tainter with this profile" if spec.moves_machines else "has a tainter of its own"
        message = f"{now.title} {runs}: {_WHEREVER}, and the two would undo each other's work"
        help = "Remove softTaint: the operator's tainter comes with profile KubeVirtRelieveAndMigrate."
        yield Problem("soft-taint/two-tainters", place, message, help)


def _before_hand_over(taint: SoftTaint, coming: Schema, at: Origin) -> Iterator[Problem]:
    if taint.mode != "RemoveOnly":
        message = f"{coming.title}, which the cluster is upgraded to, has a tainter of its own: two would run"
        help = "Write mode: RemoveOnly first, wait for a pass, and upgrade then."
        yield Problem("soft-taint/two-tainters", at, message, help)


def _switch(spec: RebalanceSpec, schema: Schema, at: Origin) -> Iterator[Problem]:
    """What the switch needs, and what it cannot be told (release-4.18 target_config_reconciler.go:1257).

    It also needs a utilization (pkg/softtainter/softtainter.go:154): with that profile we always write one.
    """
    if not spec.moves_machines:
        message = (
            f"devEnableSoftTainter of {schema.title} needs profile KubeVirtRelieveAndMigrate: "
            "without it the operator scales the descheduler to zero"
        )
        yield Problem("soft-taint/unsupported", at.below("mode"), message, "Add the profile, or remove softTaint.")
    for name in (name for name in BESIDE_THE_MODE if name in _given(at)):
        message = f"{name} has no effect: the tainter of {schema.title} is switched on here, and has no such setting"
        yield Problem("soft-taint/inert", at.below(name), message, "Remove it for these clusters.")


def _given(at: Origin) -> list[str]:
    """The keys of the block as they stand in the policy."""
    return list(at.document.data["spec"]["softTaint"])
