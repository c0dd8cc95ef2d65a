"""What goes on once a policy is gone whose object is kept."""

from __future__ import annotations

from collections.abc import Sequence

from renderer.kinds.base import Site
from renderer.kinds.rebalance_spec import Query, RebalanceSpec
from renderer.model import Origin, Problem
from renderer.words import listed


def kept(thing: str, groups: Sequence[str], delete: str, at: Origin) -> Problem:
    """`groups` are those of the catalogue that go with the policy; `delete` is how to delete the thing."""
    if groups:
        message = (
            f"once this policy is gone {thing} stays in the cluster, and its recording rules go: "
            "without samples it evicts nothing and logs an error in each cycle"
        )
        help = f"Name {listed(groups)} in a RecordingRules policy if it is to go on evicting, or {delete}"
        return Problem("rebalance/kept", at, message, help)
    message = f"once this policy is gone {thing} stays in the cluster and goes on evicting"
    return Problem("rebalance/kept", at, message, f"Before you remove the policy, commit mode: Predictive, or {delete}")


def read_groups(spec: RebalanceSpec, site: Site) -> list[str]:
    """The groups of the catalogue that come with the policy because its own query reads them."""
    if not isinstance(spec.metric, Query):
        return []
    from renderer.kinds import rebalance_query  # late: it needs the PromQL parser

    return rebalance_query.groups(spec, site)
