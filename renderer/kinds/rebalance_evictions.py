"""How many pods one cycle evicts: limits that a release lacks, or that do nothing."""

from __future__ import annotations

from collections.abc import Iterator

from renderer.kinds.rebalance_spec import RebalanceSpec
from renderer.model import Origin, Problem
from renderer.releases.descheduler import Release
from renderer.releases.descheduler_operator import Schema, since


def on_operator(spec: RebalanceSpec, schema: Schema, at: Origin) -> Iterator[Problem]:
    """What a schema of the operator makes of them."""
    given = spec.evictions
    if "total" not in schema.limits:
        message = f"{schema.title} has no eviction limits: one cycle evicts as many pods as it finds"
        if given.total is not None:
            help = f"Remove it, and know that there is no limit; it came with {since(17)}."
            yield Problem("rebalance/unsupported", at.below("total"), message, help)
        else:
            help = f"The limits came with {since(17)}: upgrade it, or rebalance by hand there."
            yield Problem("rebalance/inert", at, message, help)
    elif given.per_node is not None and (message := _node_limit(spec, schema)):
        help = f"Remove it there; it works from {since(22 if spec.metric else 20)} on."
        yield Problem("rebalance/inert", at.below("perNode"), message, help)
    else:
        yield from _above_total(spec, at.below("perNode"))


def _node_limit(spec: RebalanceSpec, schema: Schema) -> str:
    """Why a limit per node does nothing on a schema; empty where it works."""
    single = "one pod is evicted from a node in each cycle"
    if schema.node_limit_works or (spec.per_node == 1 and spec.metric is not None):
        return ""
    if "node" in schema.limits:
        return f"{schema.title} does not pass perNode on to the plugin: {single}" if spec.metric else ""
    effect = single if spec.metric else "only the total limits a node"
    return f"{schema.title} has no field for perNode, so nothing is rendered: {effect}"


def on_upstream(spec: RebalanceSpec, release: Release, at: Origin) -> Iterator[Problem]:
    """What a release of the upstream descheduler makes of them."""
    if release.total_limit:
        yield from _above_total(spec, at.below("perNode"))
        return
    message = f"{release.title} has no limit for a whole cycle: it would drop it in silence and evict without one"
    if spec.evictions.total is not None:
        help = "Remove total there, or use descheduler 0.31 or newer."
        yield Problem("rebalance/unsupported", at.below("total"), message, help)
    else:
        yield Problem("rebalance/inert", at, message, "Use descheduler 0.31 or newer; perNode holds there.")


def _above_total(spec: RebalanceSpec, at: Origin) -> Iterator[Problem]:
    """A limit that the other one is always below."""
    given = spec.evictions
    if given.per_node is not None and given.per_node > spec.total:
        which = "total" if given.total is not None else "the default of total,"
        message = f"perNode {given.per_node} is above {which} {spec.total}: no cycle ever evicts so many from one node"
        help = f"Give perNode at most {spec.total}, or raise total."
        yield Problem("rebalance/inert", at, message, help)
