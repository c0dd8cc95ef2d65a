"""What a set of rate limits would do on one very release and cluster, where that is not what people expect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from renderer import sizing
from renderer.kinds.base import OperatorRelease, Site
from renderer.kinds.limits_file import Asked
from renderer.model import Component, Limit, Origin, Problem
from renderer.releases.kubevirt import Defaults
from renderer.words import listed

Guard: TypeAlias = Literal["warn", "enforce"]
"""The guard of an adaptive policy, which computed the limits."""

_BELOW = {
    None: "Raise it to {} or drop the policy there.",
    "warn": "Set unhealthyObservations and previous right, or drop the policy there.",
    "enforce": "The guard holds it to the API server's headroom: write guard: warn to keep the default.",
}
_HEADROOM: dict[Guard | None, str] = {
    None: "Lower the limits, virt-handler's first: it counts once a node.",
    "warn": "Write guard: enforce to hold each component to its share of the headroom.",
    "enforce": "The guard goes no lower: free some headroom.",
}


def judge(asked: Mapping[Component, Asked], site: Site, guard: Guard | None = None) -> Iterator[Problem]:
    """All findings on the limits that a policy sets on a site; `guard` where they were not given but computed."""
    yield from _below_default(asked, site.releases, guard)
    yield from _equals_default(asked, site.releases)
    if Component.HANDLER in asked:
        yield from _handler_total(asked[Component.HANDLER], site, guard)
    yield from _headroom(asked, site, guard)


def without_high_burst(high: Limit, site: Site, at: Origin) -> Iterator[Problem]:
    """What the limits would fall to if the profile were dropped."""
    for release in site.releases:
        variants = _variants(release)
        falls: dict[tuple[Component, Limit], list[str]] = defaultdict(list)
        for component in Component:
            for label, entry in variants:
                if entry.limits[component] != high:
                    falls[component, entry.limits[component]].append(label)
        words = [
            f"{component.program} from {high} to {limit}"
            + ("" if len(labels) == len(variants) else f" ({listed(labels)})")
            for (component, limit), labels in falls.items()
        ]
        message = f"dropping highBurst would lower {listed(words)} on {release.defaults_name}"
        yield Problem("rate-limit/high-burst", at, message, "Keep it if these clusters were sized with it.")


def missed(sized: sizing.Sizing, demand: sizing.Demand, at: Origin) -> Iterator[Problem]:
    """The components that cannot serve the boot storm in time."""
    for component, one in sized.components.items():
        if one.missed:
            took = -(-one.seconds_milli // 1000)
            message = (
                f"{component.program} with {one.limit} needs {took} s to start {demand.virtual_machines} virtual "
                f"machines; the target is {demand.seconds} s"
            )
            yield Problem("rate-limit/target-missed", at, message, _capped(component, one.bounds.cap, sized.safe_qps))


def _capped(component: Component, cap: int, safe: int | None) -> str:
    """Why a limit goes no higher, and what to do."""
    reason = f"The limit is capped at {cap} qps there"
    if safe is None:
        return f"{reason} because no headroom is known: add apiServer.freeQPS or freeMillicores to the facts."
    if cap == sizing.highest(component):
        return f"{cap} qps is the highest that is ever sized for it: allow more time in bootStorm.within."
    return f"{reason} by the API server's headroom: free some, or allow more time in bootStorm.within."


def _variants(release: OperatorRelease) -> list[tuple[str, Defaults]]:
    """Each set of defaults that can hold, with the releases that have it."""
    entries, minor = release.defaults, release.kubevirt.minor
    if len(entries) == 1:
        return [(release.defaults_name, entries[0])]
    nexts = [entry.since_patch for entry in entries[1:]]
    labels = [f"KubeVirt {minor} before {minor}.{patch}" for patch in nexts[:1]]
    return list(zip([*labels, *(f"KubeVirt {minor}.{patch} and newer" for patch in nexts)], entries, strict=True))


def _below_default(
    asked: Mapping[Component, Asked], releases: Iterable[OperatorRelease], guard: Guard | None
) -> Iterator[Problem]:
    for field in ("qps",) if guard else ("qps", "burst"):  # burst is always twice a computed qps
        found: dict[tuple[Origin, int, int, str], list[str]] = defaultdict(list)
        for release in releases:
            for (origin, value, default, where), components in _shortfalls(asked, field, release).items():
                names = listed(component.program for component in components)
                found[origin, value, default, names].append(where)
        for (origin, value, default, names), places in found.items():
            message = f"{field} {value} is below the default {default} of {names} on {listed(places)}"
            yield Problem("rate-limit/below-default", origin, message, _BELOW[guard].format(default))


def _shortfalls(
    asked: Mapping[Component, Asked], field: str, release: OperatorRelease
) -> dict[tuple[Origin, int, int, str], list[Component]]:
    """The components below a default: place and value, the highest default that can hold, and where it does."""
    found: dict[tuple[Origin, int, int, str], list[Component]] = defaultdict(list)
    for component, one in asked.items():
        value = getattr(one.limit, field)
        variants = [(label, getattr(entry.limits[component], field)) for label, entry in _variants(release)]
        label, highest = max(variants, key=lambda variant: variant[1])
        if value < highest:
            others = [f"{default} on {other}" for other, default in variants if default != highest]
            where = f"{label} ({listed(others)})" if others else release.defaults_name
            found[getattr(one, field), value, highest, where].append(component)
    return found


def _equals_default(asked: Mapping[Component, Asked], releases: Iterable[OperatorRelease]) -> Iterator[Problem]:
    entries = [entry for release in releases for entry in release.defaults]
    equal = [
        component for component, one in asked.items() if all(entry.limits[component] == one.limit for entry in entries)
    ]
    shared = len({id(one) for one in asked.values()}) == 1 and len(asked) > 1
    if shared and not {Component.API, Component.CONTROLLER, Component.WEBHOOK} <= set(equal):
        return
    where = listed(dict.fromkeys(release.defaults_name for release in releases))
    rest = [component.program for component in asked if component not in equal]
    for origin, components in _by_origin(asked, equal).items():
        names = listed(component.program for component in components)
        only = f"; only {listed(rest)} changes" if shared and rest else ""
        message = f"{asked[components[0]].limit} is already the default of {names} on {where}{only}"
        help = "Drop the policy there." if not rest else "Drop it there, or name only the components that need more."
        yield Problem("rate-limit/equals-default", origin, message, help)


def _by_origin(asked: Mapping[Component, Asked], components: Iterable[Component]) -> dict[Origin, list[Component]]:
    groups: dict[Origin, list[Component]] = defaultdict(list)
    for component in components:
        groups[asked[component].qps].append(component)
    return groups


def _handler_total(asked: Asked, site: Site, guard: Guard | None) -> Iterator[Problem]:
    defaults = {
        entry.limits[Component.HANDLER].qps: release.defaults_name
        for release in reversed(site.releases)
        for entry in release.defaults
    }
    qps, default = asked.limit.qps, min(defaults)
    if qps <= default:
        return
    total = "counts once for each of them"
    if site.facts is not None:
        total = f"on {site.facts.nodes} nodes is {qps * site.facts.nodes} calls a second at worst"
    where = f" on {defaults[default]}" if len(defaults) > 1 else ""
    message = (
        f"virt-handler runs on every node: qps {qps} {total}; it is {qps / default:g} times the default of "
        f"{default}{where}"
    )
    help = _HEADROOM[guard] if guard else "Give virt-handler a limit of its own if the API server cannot take that."
    yield Problem("rate-limit/handler-total", asked.qps, message, help)


def _headroom(asked: Mapping[Component, Asked], site: Site, guard: Guard | None) -> Iterator[Problem]:
    if site.facts is None or not asked:
        return
    safe = sizing.safe_qps(site.facts.headroom, site.facts.unhealthy)
    defaults = site.releases[0].defaults[-1].limits
    wanted = {
        component: asked[component].limit if component in asked else defaults[component] for component in Component
    }
    worst, before = (sizing.worst_case(limits, site.facts.nodes).qps for limits in (wanted, defaults))
    if safe is not None and worst > max(safe, before):
        origin = next(iter(asked.values())).qps
        message = (
            f"worst case of all components together: {worst} calls a second ({before} with the defaults); the API "
            f"server's safe load is {safe}"
        )
        help = _HEADROOM[guard] if guard or Component.HANDLER in asked else "Lower the limits."
        yield Problem("rate-limit/headroom", origin, message, help)
