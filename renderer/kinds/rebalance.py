"""`RebalancePolicy`: virtual machines move from loaded nodes, by the descheduler of the platform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from renderer.kinds.base import ApiVersion, Metadata, Policy, Request, Site, check_path
from renderer.kinds.fields import Duration, seconds
from renderer.kinds.rebalance_spec import (
    LOAD_PROFILES,
    MODIFIERS,
    MigrationCooldown,
    PriorityThreshold,
    Query,
    RebalanceSpec,
)
from renderer.model import Origin, Problem, Tree
from renderer.words import listed

_NO_INCLUSION = LOAD_PROFILES | {"CompactAndScale"}
_LONGEST = 2**31 - 1


class RebalancePolicy(Policy, frozen=True, kw_only=True):
    """How load is kept even over the nodes of a cluster."""

    api_version: ApiVersion
    kind: Literal["RebalancePolicy"]
    metadata: Metadata
    spec: RebalanceSpec

    guarded = False
    reads_base = True

    def check(self, origin: Origin, tree: Tree) -> Iterator[Problem]:
        spec, at = self.spec, origin.below("spec")
        yield from _check_durations(spec, at)
        yield from _check_thresholds(spec, at.below("thresholds"))
        if spec.priority_threshold == PriorityThreshold():
            message = "priorityThreshold needs className or value"
            help = "Give one of the two, or leave it out."
            yield Problem("policy/missing-key", at.below("priorityThreshold"), message, help)
        yield from _check_namespaces(spec, at.below("namespaces"))
        if isinstance(spec.utilization, Query):
            # Late, here and below: the PromQL parser is for policies with a query.
            from renderer.kinds import rebalance_query

            yield from rebalance_query.check(spec.utilization, at.below("utilization", "query"))
        yield from _check_unused(spec, at)
        yield from _check_manifests(spec, at.below("manifests"), tree)

    def apply(self, origin: Origin, site: Site) -> Iterator[Request]:
        at, name = origin.below("spec"), f"RebalancePolicy/{self.metadata.name}"
        wrong = list(_check_topology(site, at.below("clusters")))
        yield from wrong
        if not wrong:
            # Late: a fleet without such a policy starts sooner.
            from renderer.kinds import rebalance_kubernetes, rebalance_openshift, rule_objects

            if self.spec.metric or self.spec.soft_taint:
                yield from rule_objects.judge_scrapes(site)
            if isinstance(self.spec.utilization, Query):
                from renderer.kinds import rebalance_query

                yield from rebalance_query.judge(self.spec.utilization, at.below("utilization", "query"), site)
                yield from rebalance_query.rules(self.spec, site, name)
            platform = rebalance_openshift if site.platform == "openshift" else rebalance_kubernetes
            yield from platform.requests(self.spec, at, site, name)


def _check_manifests(spec: RebalanceSpec, at: Origin, tree: Tree) -> Iterator[Problem]:
    outside = [problem for index, path in enumerate(spec.manifests) for problem in check_path(path, at.below(index))]
    yield from outside
    if spec.manifests and not outside:
        from renderer.kinds import manifests  # late: most policies name none

        opaque = manifests.find(tree, spec.manifests).opaque
        wanted = "what works against the policy: its checks are off there"
        yield from manifests.not_inspected("rebalance/not-inspected", opaque, wanted, at)


def _check_durations(spec: RebalanceSpec, at: Origin) -> Iterator[Problem]:
    given: dict[tuple[str, ...], Duration | None] = {("interval",): spec.interval, ("podLifetime",): spec.pod_lifetime}
    if spec.soft_taint is not None:
        given |= {
            ("softTaint", "every"): spec.soft_taint.every,
            ("softTaint", "staleAfter"): spec.soft_taint.stale_after,
        }
    if spec.migration_cooldown is not None:
        cooldown = spec.migration_cooldown
        given |= {("migrationCooldown", name): getattr(cooldown, name) for name in ("base", "max", "window")}
        if seconds(cooldown.base) > seconds(cooldown.max):
            yield _swapped(cooldown, at.below("migrationCooldown"))
    for path, value in given.items():
        if value is not None and not 0 < seconds(value) <= _LONGEST:
            message = f"{'.'.join(path)} {value} must be above zero and fit {_LONGEST} seconds"
            yield Problem("policy/value", at.below(*path), message, "Write it as in 3m.")


def _swapped(cooldown: MigrationCooldown, at: Origin) -> Problem:
    """A base above max, where either may be a default."""
    given = at.document.data["spec"]["migrationCooldown"]
    if "max" not in given:
        message = f"base {cooldown.base} is longer than the default of max, {cooldown.max}"
        help = f"Give a max of at least {cooldown.base}, or a shorter base."
    elif "base" not in given:
        message = f"max {cooldown.max} is shorter than the default of base, {cooldown.base}"
        help = f"Give a base of at most {cooldown.max}, or a longer max."
    else:
        message, help = f"base {cooldown.base} is longer than max {cooldown.max}", "Swap the two."
    return Problem("policy/value", at.below("base" if "base" in given else "max"), message, help)


def _check_thresholds(spec: RebalanceSpec, at: Origin) -> Iterator[Problem]:
    given = spec.thresholds
    if given.static is None and given.deviation is not None and spec.balances_load and not spec.moves_machines:
        message = (
            f"with {listed(name for name in spec.profiles if name in LOAD_PROFILES)} thresholds can only be static: "
            "a deviation would be dropped in silence, and 20 and 50 points of the scale would hold"
        )
        yield Problem("rebalance/ignored", at.below("deviation"), message, "Write static: instead.")


def _check_namespaces(spec: RebalanceSpec, at: Origin) -> Iterator[Problem]:
    given = spec.namespaces
    blind = [name for name in spec.profiles if name in _NO_INCLUSION]
    if given.included and blind:
        message = (
            f"with {listed(blind)} namespaces can only be excluded: included would be dropped, "
            "and pods of every other namespace would be evicted as well"
        )
        help = "Name under excluded what is to stay, or choose other profiles."
        yield Problem("rebalance/ignored", at.below("included"), message, help)


def _check_unused(spec: RebalanceSpec, at: Origin) -> Iterator[Problem]:
    """Fields that nothing reads with these profiles."""
    if MODIFIERS.issuperset(spec.profiles):
        message = f"nothing would be evicted with {listed(spec.profiles)} alone: other profiles choose the pods"
        yield Problem("rebalance/ignored", at.below("profiles"), message, "Add a profile, or remove the policy.")
    thresholds = spec.thresholds.deviation or spec.thresholds.static
    unread = {
        "utilization": spec.utilization is not None and not spec.balances_load,
        "thresholds": thresholds is not None and not spec.balances_load,
        "podLifetime": spec.pod_lifetime is not None and "LifecycleAndUtilization" not in spec.profiles,
        "migrationCooldown": spec.migration_cooldown is not None and not spec.moves_machines,
    }
    for name, unused in unread.items():
        if unused:
            message = f"{name} has no effect with {listed(spec.profiles)}"
            yield Problem("rebalance/inert", at.below(name), message, "Remove it, or add the profile it is meant for.")


def _check_topology(site: Site, at: Origin) -> Iterator[Problem]:
    help = "Leave these clusters out of the policy."
    if site.topology == "single-node":
        message = "topology single-node has no second node that a machine could move to"
        yield Problem("rebalance/topology", at, message, help)
