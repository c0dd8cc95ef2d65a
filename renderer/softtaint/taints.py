"""The job's own taints, told apart from everybody else's, and the list that a node should have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

Taint: TypeAlias = dict[str, Any]
"""An entry of `spec.taints` as the API server gave it: a field unknown to us must come back as it was."""

OVERUTILIZED: Final = "nodeutilization.descheduler.openshift.io/overutilized"
APPROPRIATE: Final = "nodeutilization.descheduler.openshift.io/appropriate"
TAINTS: Final = (OVERUTILIZED, APPROPRIATE)
"""The keys, in the order in which they are appended.  They are those of the OpenShift operator's own soft-tainter
(cluster-kube-descheduler-operator pkg/softtainter/softtainter.go:44), so that it can take over and leave nothing."""
VALUE: Final = "true"
EFFECT: Final = "PreferNoSchedule"
HARD: Final = frozenset({"NoSchedule", "NoExecute"})

LEVELS: Final = (frozenset[str](), frozenset({APPROPRIATE}), frozenset(TAINTS))
"""The keys that a node has at 0, 1 and 2 taints."""


def ours(taint: Taint) -> bool:
    """Whether it is exactly one of ours; when it was added does not matter."""
    return taint.get("key") in TAINTS and taint.get("value") == VALUE and taint.get("effect") == EFFECT


def keys(taints: Sequence[Taint] | None) -> frozenset[str]:
    """Which of our taints are there."""
    return frozenset(taint["key"] for taint in taints or () if ours(taint))


def strangers(taints: Sequence[Taint] | None) -> list[str]:
    """Taints that somebody else set with a key of ours, as `key=value:effect`: they are reported and never touched."""
    found = [taint for taint in taints or () if taint.get("key") in TAINTS and not ours(taint)]
    return [f"{taint['key']}={taint.get('value') or ''}:{taint.get('effect') or ''}" for taint in found]


def hard(taints: Sequence[Taint] | None) -> bool:
    """Whether pods without tolerations cannot be scheduled there."""
    return any(taint.get("effect") in HARD for taint in taints or ())


def taken(taints: Sequence[Taint] | None) -> frozenset[str]:
    """Our keys that we cannot add: somebody else's taint has the key with our effect, and the API server allows one."""
    found = (taint for taint in taints or () if taint.get("key") in TAINTS and taint.get("effect") == EFFECT)
    return frozenset(taint["key"] for taint in found if not ours(taint))


def settled(taints: Sequence[Taint] | None, wanted: frozenset[str]) -> list[Taint]:
    """The list that a node should have: what is not ours as and where it is, ours only of the wanted keys, once each.

    What is missing is appended, but for keys that are taken.
    """
    listed = list(taints or ())
    kept: list[Taint] = []
    for taint in listed:
        if not ours(taint) or (taint["key"] in wanted and taint["key"] not in keys(kept)):
            kept.append(taint)
    missing = [key for key in TAINTS if key in wanted and key not in keys(kept) | taken(listed)]
    return kept + [{"key": key, "value": VALUE, "effect": EFFECT} for key in missing]
