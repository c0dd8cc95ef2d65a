"""A node, as much of it as the job needs."""

from __future__ import annotations

from typing import Final

from renderer.softtaint import taints
from renderer.softtaint.taints import Taint
from renderer.values import Value

MARKS: Final = frozenset({"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disruption", "karpenter.sh/disrupted"})
"""Keys of taints on nodes that an autoscaler is about to delete.  `DeletionCandidateOfClusterAutoscaler` is none: it
is soft, and comes and goes."""


class Node(Value, frozen=True):
    """`taints` as they were read, None where there were none."""

    name: str
    uid: str
    taints: list[Taint] | None = None
    in_scope: bool = True
    """Whether the selector matches."""
    ready: bool = True
    cordoned: bool = False
    deleted: bool = False
    """Whether its deletion has begun."""

    @property
    def marked(self) -> bool:
        """Whether it is about to go, and is left alone."""
        return self.deleted or any(taint.get("key") in MARKS for taint in self.taints or ())

    @property
    def feasible(self) -> bool:
        """Whether pods without tolerations can be scheduled there."""
        return self.ready and not self.cordoned and not self.marked and not taints.hard(self.taints)

    @property
    def keys(self) -> frozenset[str]:
        """Our taints on it."""
        return taints.keys(self.taints)
