"""The kinds of documents.  A new policy kind is one file here and its name in `KINDS`."""

from __future__ import annotations

from renderer.kinds.base import Policy
from renderer.kinds.cluster import Cluster
from renderer.kinds.cluster_facts import ClusterFacts
from renderer.kinds.expansion import ExpansionPolicy
from renderer.kinds.rate_limit import RateLimitPolicy
from renderer.kinds.rebalance import RebalancePolicy
from renderer.kinds.recording_rules import RecordingRules

__all__ = ["KINDS", "POLICIES", "Cluster", "ClusterFacts", "Policy"]

POLICIES: dict[str, type[Policy]] = {
    "RateLimitPolicy": RateLimitPolicy,
    "ExpansionPolicy": ExpansionPolicy,
    "RebalancePolicy": RebalancePolicy,
    "RecordingRules": RecordingRules,
}
"""The policy kinds, in the order in which a cluster's folder is put together."""

KINDS: dict[str, type[Cluster | ClusterFacts | Policy]] = {
    "Cluster": Cluster,
    "ClusterFacts": ClusterFacts,
    **POLICIES,
}
