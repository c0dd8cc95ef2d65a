"""A `RebalancePolicy` against other manifests of the repository: scheduler, migration limits, pressure metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from renderer.kinds import manifests, rebalance_pressure
from renderer.kinds.base import Site
from renderer.kinds.fields import leaves_repository
from renderer.kinds.rebalance_spec import LOAD_PROFILES, RebalanceSpec
from renderer.model import Body, Origin, Problem
from renderer.releases import hyperconverged, kubevirt
from renderer.releases.descheduler_operator import Schema, spelled
from renderer.words import listed, shown

_SCHEDULER = "cluster"
"""The only Scheduler that the operator reads; a patch may leave its name out."""


def judge(spec: RebalanceSpec, known: Sequence[Schema], site: Site, at: Origin) -> Iterator[Problem]:
    """On OpenShift."""
    found = find(spec, site)
    yield from _scheduler(spec, known, found, at)
    yield from migration_limits(spec, found, site, at)
    yield from rebalance_pressure.judge(spec, known, found, site, at)


def judge_upstream(spec: RebalanceSpec, site: Site, at: Origin) -> Iterator[Problem]:
    """On Kubernetes, where the scheduler's configuration stands in for OpenShift's profile."""
    found = find(spec, site)
    packs = any(_packs(body) for body, _ in found)
    if "CompactAndScale" in spec.profiles and not packs:
        message = "CompactAndScale empties nodes that the default scheduler fills again: pods would go round for ever"
        help = "Name a KubeSchedulerConfiguration with scoringStrategy type MostAllocated under manifests."
        yield Problem("rebalance/scheduler-conflict", at.below("profiles"), message, help)
    if packs and spec.balances_load:
        yield _fights("scoringStrategy MostAllocated", at)
    yield from migration_limits(spec, found, site, at)


def find(spec: RebalanceSpec, site: Site) -> list[tuple[Body, Origin]]:
    """The manifests that the policy names."""
    patterns = [pattern for pattern in spec.manifests if not leaves_repository(pattern)]
    return manifests.find(site.tree, patterns).objects


_ZERO = "the operator scales the descheduler to zero and reports TargetConfigControllerDegraded"


def _scheduler(
    spec: RebalanceSpec, known: Sequence[Schema], found: list[tuple[Body, Origin]], at: Origin
) -> Iterator[Problem]:
    """OpenShift's scheduler profile (main pkg/operator/target_config_reconciler.go:1556).

    Every manifest counts, for one may be a patch of another, or a cluster's own.
    """
    stated = dict(_profiles(found))
    packs, spreads = stated.get("HighNodeUtilization"), stated.get("LowNodeUtilization")
    spreading = [name for name in spec.profiles if name in LOAD_PROFILES and name != "KubeVirtRelieveAndMigrate"]
    if packs and spreading:
        message = f"scheduler profile HighNodeUtilization ({packs}) packs "
        message += f"what rebalancing with {listed(spreading)} spreads: {_ZERO}"
        help = "Change one of the two, or narrow manifests to those of these clusters."
        yield Problem("rebalance/scheduler-conflict", at.below("profiles"), message, help)
    compacts = "CompactAndScale" in spec.profiles and spelled("CompactAndScale", known) is not None
    if compacts and (spreads or not stated):
        message = f"scheduler profile LowNodeUtilization ({spreads}) spreads what CompactAndScale packs: {_ZERO}"
        if not spreads:
            message = (
                "the default scheduler profile, LowNodeUtilization, spreads what CompactAndScale packs: pods go round "
                "for ever, for the operator refuses it only where a Scheduler states the profile"
            )
        help = "Name the Scheduler manifest with profile: HighNodeUtilization under manifests, or drop CompactAndScale."
        yield Problem("rebalance/scheduler-conflict", at.below("profiles"), message, help)
    if packs and spec.moves_machines:
        yield _fights(f"profile HighNodeUtilization ({packs})", at)


def _name(body: Body) -> object:
    return manifests.below(body, "metadata").get("name")


def _profiles(found: list[tuple[Body, Origin]]) -> Iterator[tuple[str, str]]:
    """The scheduler profiles that manifests state, each with its place; none is OpenShift's LowNodeUtilization."""
    for body, origin in found:
        profile = manifests.below(body, "spec").get("profile")
        read = manifests.of_kind(body, "Scheduler", "config.openshift.io/") and _name(body) in (None, _SCHEDULER)
        if read and isinstance(profile, str) and profile:
            place = origin.below("spec", "profile").position
            yield profile, place.place


def _fights(scheduler: str, at: Origin) -> Problem:
    message = (
        f"scheduler {scheduler} packs machines on the nodes that the descheduler then relieves: they go round, "
        "and nothing ever refuses it"
    )
    return Problem("rebalance/scheduler-fights", at.below("profiles"), message, "Use the default scheduler profile.")


def _packs(body: Body) -> bool:
    """Whether a scheduler configuration prefers full nodes."""
    if not manifests.of_kind(body, "KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/"):
        return False
    return any(
        manifests.below(plugin, "args", "scoringStrategy").get("type") == "MostAllocated"
        for profile in manifests.entries(body.get("profiles"))
        for plugin in manifests.entries(profile.get("pluginConfig"))
    )


def migration_limits(
    spec: RebalanceSpec, found: list[tuple[Body, Origin]], site: Site, at: Origin
) -> Iterator[Problem]:
    """Evictions beyond what KubeVirt migrates at once only wait; fewer leave migrations unused."""
    for body, origin in _operators(found, site):
        limits = _limits(body, site)
        if limits is None:
            continue
        per_cluster, per_node = limits
        wanted = {"total": (spec.total, per_cluster), "perNode": (spec.per_node, per_node)}
        apart = [
            f"{name} {ours} against {_stated(theirs)}" for name, (ours, theirs) in wanted.items() if ours != theirs
        ]
        if apart:
            place = origin.position
            message = (
                f"evictions {' and '.join(apart)} in {place.place} ({body['kind']}): "
                "evictions beyond the migration limits queue up, below them migrations go unused"
            )
            help = "Give both the same numbers: total and parallelMigrationsPerCluster, perNode and "
            help += "parallelOutboundMigrationsPerNode."
            yield Problem("rebalance/migration-limits", at.below("evictions"), message, help)


def _operators(found: list[tuple[Body, Origin]], site: Site) -> list[tuple[Body, Origin]]:
    """The objects that configure migrations: those of the cluster's own base where it is among the manifests."""
    every = [item for item in found if str(item[0].get("kind")) in ("HyperConverged", "KubeVirt")]
    own = [item for item in every if site.operator.base and item[1].document.file.startswith(f"{site.operator.base}/")]
    return own or every


def _limits(body: Body, site: Site) -> tuple[Any, Any] | None:
    """Migrations of the cluster and out of one node, with the defaults of the present release: those of the coming
    one are for new objects (kubevirt pkg/virt-config/virt-config.go)."""
    release, api = site.releases[0].hyperconverged, str(body.get("apiVersion"))
    if body.get("kind") == "HyperConverged" and api in hyperconverged.LIVE_MIGRATION:
        settings = manifests.below(body, *hyperconverged.LIVE_MIGRATION[api])
        outbound = release.outbound_migrations if release else kubevirt.OUTBOUND_MIGRATIONS
    elif manifests.of_kind(body, "KubeVirt", "kubevirt.io/"):
        settings, outbound = manifests.below(body, "spec", "configuration", "migrations"), kubevirt.OUTBOUND_MIGRATIONS
    else:
        return None
    given = settings.get("parallelMigrationsPerCluster"), settings.get("parallelOutboundMigrationsPerNode")
    return _or(given[0], kubevirt.PARALLEL_MIGRATIONS), _or(given[1], outbound)


def _or(value: Any, default: int) -> Any:
    """The API server and KubeVirt put the default in the place of null."""
    return default if value is None else value


def _stated(value: Any) -> str:
    """A limit as it stands in its manifest."""
    return f'"{shown(value)}", a text that the API server refuses,' if isinstance(value, str) else shown(value)
