"""Evictions of virtual machines go on in the background; where they cannot, each counts as failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from renderer.kinds.base import Site
from renderer.kinds.rebalance_spec import RebalanceSpec
from renderer.model import Origin, Problem
from renderer.releases.descheduler import Release
from renderer.releases.descheduler_operator import Schema, since, spelled
from renderer.releases.hyperconverged import HyperConvergedRelease
from renderer.words import listed

_MOVING = ("KubeVirtRelieveAndMigrate", "LongLifecycle", "EvictPodsWithLocalStorage")
"""Profiles by which pods of virtual machines are evicted without a word from their owners."""

_STORM = (
    "every eviction of a virtual machine counts as failed there, and the next one follows at once: a migration storm"
)
_FIELD = "devEnableEvictionsInBackground"


def on_operator(spec: RebalanceSpec, known: Sequence[Schema], site: Site, at: Origin) -> Iterator[Problem]:
    """What operator and KubeVirt lack for background evictions, and the alert of HyperConverged about it."""
    for schema in known:
        if _FIELD not in schema.customizations and all(spelled(name, [schema]) for name in spec.profiles):
            reason = f"{schema.title} cannot evict in the background"
            yield from _missing(spec, reason, f"It came with {since(17)}.", at)
    yield from _kubevirt(spec, site, at)
    if all(spelled(name, known) for name in spec.profiles):
        yield from _alert(spec, known, site, at)


def on_upstream(spec: RebalanceSpec, releases: Sequence[Release], site: Site, at: Origin) -> Iterator[Problem]:
    """What the upstream descheduler and KubeVirt lack for background evictions."""
    for release in releases:
        if not release.background:
            reason = f"{release.title} cannot evict in the background"
            yield from _missing(spec, reason, "It came with descheduler 0.32.", at)
    yield from _kubevirt(spec, site, at)


def _kubevirt(spec: RebalanceSpec, site: Site, at: Origin) -> Iterator[Problem]:
    for release in site.releases:
        if not release.kubevirt.tells_descheduler:
            reason = f"{release.kubevirt_name} does not tell the descheduler that a machine is migrating"
            yield from _missing(spec, reason, "KubeVirt 1.3 and newer do.", at)


def _missing(spec: RebalanceSpec, reason: str, from_: str, at: Origin) -> Iterator[Problem]:
    moving = [name for name in spec.profiles if name in _MOVING]
    if moving:
        help = f"{from_} Leave these clusters out until they are upgraded, or remove {listed(moving)}."
        yield Problem("rebalance/no-background", at.below("profiles"), f"{reason}: {_STORM}", help)
    else:
        message = f"{reason}: a virtual machine whose owner allows evictions is migrated, and counts as failed"
        help = f"{from_} Until then, let no virtual machine carry descheduler.alpha.kubernetes.io/evict."
        yield Problem("rebalance/foreground", at.below("profiles"), message, help)


def _alert(spec: RebalanceSpec, known: Sequence[Schema], site: Site, at: Origin) -> Iterator[Problem]:
    """HyperConverged's alert on a descheduler that would work against virtual machines."""
    for release in site.releases:
        wanted = _accepted(release.hyperconverged, spec, known) if release.hyperconverged else ""
        if wanted:
            message = f"{release.name} raises the critical alert HCOMisconfiguredDescheduler here: it accepts {wanted}"
            help = "Use profile KubeVirtRelieveAndMigrate, or silence the alert on purpose."
            yield Problem("rebalance/misconfigured-alert", at.below("profiles"), message, help)


def _accepted(release: HyperConvergedRelease, spec: RebalanceSpec, known: Sequence[Schema]) -> str:
    """What a release accepts, where the policy is not that; empty where it is content."""
    if release.descheduler_background and not all(_FIELD in schema.customizations for schema in known):
        return "only objects that enable background evictions"
    if release.descheduler_profiles and not set(release.descheduler_profiles).intersection(spec.profiles):
        return f"only {listed(release.descheduler_profiles)}"
    return ""
