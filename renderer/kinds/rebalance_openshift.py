"""A `RebalancePolicy` on OpenShift: the operator's object, and what its installed release would make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from renderer.kinds import (
    kube_descheduler,
    rebalance_background,
    rebalance_evictions,
    rebalance_exclusion,
    rebalance_pressure,
    rebalance_surroundings,
)
from renderer.kinds.base import Request, Site
from renderer.kinds.delivery import engine_annotations
from renderer.kinds.operator_schema import unsettled
from renderer.kinds.rebalance_kept import kept, read_groups
from renderer.kinds.rebalance_spec import Query, RebalanceSpec
from renderer.model import Manifest, Origin, Problem
from renderer.releases import descheduler_operator as operator
from renderer.releases.descheduler_operator import Schema
from renderer.releases.operator_metrics import METRICS
from renderer.words import listed, plural

NODE_TUNING = "_node-tuning"
"""Stands apart from the cluster's folder: what is in it reboots nodes."""


def requests(spec: RebalanceSpec, at: Origin, site: Site, policy: str) -> Iterator[Request]:
    """The `KubeDescheduler`, the MachineConfigs that were asked for, and everything that is wrong."""
    known = tuple(operator.TABLE[name] for name in site.descheduler.schemas)
    if not known:
        yield from _no_version(site)
        return
    if site.topology == "hosted" and (wrong := _hosted(spec, known, at.below("clusters"))):
        yield wrong
        return
    for schema in known:
        yield from _judge(spec, schema, at)
    yield from rebalance_exclusion.on_operator(spec, at)
    yield from _judge_query(spec, known, at)
    yield from rebalance_background.on_operator(spec, known, site, at)
    yield from rebalance_surroundings.judge(spec, known, site, at)
    yield from _node_tuning(spec, site, at, policy)
    query = kube_descheduler.utilization(spec.metric) if spec.metric else ""
    keep = spec.on_removal == "Keep"
    wanted = engine_annotations(site, keep=keep, custom=True, text=query)
    yield Manifest("descheduler", "kubedescheduler", kube_descheduler.body(spec, known, wanted), policy)
    if spec.soft_taint is not None:
        from renderer.kinds import soft_taint  # late: most fleets have no tainter

        yield from soft_taint.requests(spec, spec.soft_taint, at, site, policy, known)
    if keep:
        yield _kept(spec, at.below("onRemoval"), site)


def _hosted(spec: RebalanceSpec, known: Sequence[Schema], at: Origin) -> Problem | None:
    """Nodes of a hosted control plane take no MachineConfig, which is how pressure metrics are turned on."""
    effect = "and without pressure metrics the operator scales the descheduler to zero"
    if not rebalance_pressure.checked(spec, known):
        effect = "so that nothing here turns on their pressure metrics"
        if not spec.pressure_stall.enable:
            return None
    message = f"topology hosted cannot be rebalanced so: its nodes take no MachineConfig, {effect}"
    help = "Leave these clusters out of the policy, or use profiles that do without pressure metrics."
    return Problem("rebalance/topology", at, message, help)


def _kept(spec: RebalanceSpec, at: Origin, site: Site) -> Problem:
    delete = f"delete the object afterwards: oc delete kubedescheduler {operator.NAME} -n {operator.NAMESPACE}"
    return kept("the KubeDescheduler", read_groups(spec, site), delete, at)


def _no_version(site: Site) -> Iterator[Problem]:
    at = site.origin.below("spec", "versions")
    if "deschedulerOperator" in site.origin.document.data["spec"]["versions"]:
        return  # an unknown version has been reported already
    message = (
        "a rebalance policy needs the version of the descheduler operator, and versions has no deschedulerOperator"
    )
    help = f"Add the installed ClusterServiceVersion, not the OpenShift version: oc get csv -n {operator.NAMESPACE}"
    yield Problem("rebalance/no-release", at, message, help)


def _judge(spec: RebalanceSpec, schema: Schema, at: Origin) -> Iterator[Problem]:
    unknown = list(_unknown_profiles(spec, schema, at.below("profiles")))
    yield from unknown
    yield from _conflicts(spec, schema, at.below("profiles"))
    if not unknown:
        yield from _unknown_thresholds(spec, schema, at.below("thresholds", "deviation"))
        yield from _unknown_metric(spec, schema, at.below("utilization"))
        yield from rebalance_evictions.on_operator(spec, schema, at.below("evictions"))
    yield from _cooldown(spec, schema, at.below("migrationCooldown"))


def _unknown_profiles(spec: RebalanceSpec, schema: Schema, at: Origin) -> Iterator[Problem]:
    for index, name in enumerate(spec.profiles):
        if operator.spelled(name, [schema]) is None:
            first = next(one for one in operator.TABLE.values() if operator.spelled(name, [one]))
            message = f"{schema.title} has no profile {name}: the API server refuses the object"
            since = operator.since(operator.minor(first.name))
            help = f"It came with {since}. Leave these clusters out, or name another profile."
            yield Problem("rebalance/unsupported", _item(at, index), message, help)


def _item(at: Origin, index: int) -> Origin:
    """A profile of the list, or the place where the list would stand."""
    return at.below(index) if at.document.data["spec"].get("profiles") else at


def _conflicts(spec: RebalanceSpec, schema: Schema, at: Origin) -> Iterator[Problem]:
    known = [name if operator.spelled(name, [schema]) else "" for name in spec.profiles]  # others are told already
    for index, name in enumerate(known):
        before = known[:index]
        if name and name in before:
            message = f"profile {name} stands twice: on {schema.title} {schema.conflict}"
            yield Problem("rebalance/exclusive-profiles", at.below(index), message, "Remove one of them.")
            continue
        for other in before:
            if frozenset((name, other)) in operator.EXCLUSIVE:
                message = f"profiles {other} and {name} exclude each other: on {schema.title} {schema.conflict}"
                yield Problem("rebalance/exclusive-profiles", at.below(index), message, "Keep one of them.")


def _unknown_thresholds(spec: RebalanceSpec, schema: Schema, at: Origin) -> Iterator[Problem]:
    """A deviation that nothing reads has been told with the policy itself."""
    if (
        spec.thresholds.deviation is not None
        and spec.moves_machines
        and "devDeviationThresholds" not in schema.customizations
    ):
        message = f"{schema.title} has no deviation thresholds: server-side apply refuses the object"
        yield Problem(
            "rebalance/unsupported", at, message, f"They came with {operator.since(18)}. Write static: there."
        )


def _unknown_metric(spec: RebalanceSpec, schema: Schema, at: Origin) -> Iterator[Problem]:
    metric = spec.metric
    if metric is None:
        return
    if not schema.takes_metrics:
        message = f"{schema.title} measures load by what pods request, and nothing else"
        yield Problem(
            "rebalance/unsupported",
            at,
            message,
            f"Leave utilization out there; metrics came with {operator.since(18)}.",
        )
    elif isinstance(metric, str) and operator.minor(schema.name) < METRICS[metric].since:
        since = METRICS[metric].since
        message = f"{schema.title} does not know utilization {metric}: {operator.OLD_POLICY}"
        help = f"It came with {operator.since(since)}. Write utilization: CPUCombined there, the nearest that it knows."
        help += unsettled(schema, since)
        yield Problem("rebalance/unsupported", at, message, help)


def _cooldown(spec: RebalanceSpec, schema: Schema, at: Origin) -> Iterator[Problem]:
    if spec.migration_cooldown is None or "devMigrationCooldown" in schema.customizations:
        return
    message = f"{schema.title} has no migration cooldown: server-side apply refuses the object"
    help = f"Remove it there; the fields came with {operator.since(23)}.{unsettled(schema, 23)}"
    yield Problem("rebalance/unsupported", at, message, help)


def _judge_query(spec: RebalanceSpec, known: Sequence[Schema], at: Origin) -> Iterator[Problem]:
    """Records that the operator does not make, and the one built-in metric that is no ratio: it counts busy cores
    (cluster-monitoring-operator prometheus-rule)."""
    if isinstance(spec.metric, Query):
        from renderer.kinds import rebalance_records  # late: it needs the PromQL parser

        yield from rebalance_records.judge(spec.metric, known, at.below("utilization", "query"))
    if spec.metric == "CPUUsage" and any(schema.takes_metrics for schema in known):
        message = (
            f"PrometheusCPUUsage asks for {METRICS['CPUUsage'].query}, the number of busy cores: "
            "one node above one core ends the whole cycle and nothing is balanced"
        )
        help = "Write utilization: {query: 'descheduler:nodeutilization:cpu:avg1m'}, the same as a ratio."
        yield Problem("rebalance/query-range", at.below("utilization"), message, help)


def _node_tuning(spec: RebalanceSpec, site: Site, at: Origin, policy: str) -> Iterator[Request]:
    if not spec.pressure_stall.enable:
        return
    pools = site.worker_pools
    message = (
        f"psi=1 reboots every node of {plural('pool', len(pools))} {listed(pools)}, one after the other: "
        f"it stands apart under {NODE_TUNING}, is never applied with the rest, and stays once it is gone from Git"
    )
    help = (
        "Apply it by itself in a maintenance window, before the policy's other objects. "
        "To take it away is by hand, and reboots the nodes again."
    )
    yield Problem("rebalance/reboots", at.below("pressureStall", "enable"), message, help)
    for pool in pools:
        body = kube_descheduler.machine_config(pool, engine_annotations(site, keep=True, custom=True))
        yield Manifest(NODE_TUNING, kube_descheduler.machine_config_name(pool), body, policy)
