"""What a set of rate limits would do on one very release and cluster, where that is not what people expect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from renderer import sizing
from renderer.kinds.base import OperatorRelease, Site
from renderer.kinds.limits_file import Asked
from renderer.model import Component, Limit, Origin, Problem
from renderer.releases.kubevirt import Defaults


def judge(asked: Mapping[Component, Asked], site: Site) -> Iterator[Problem]:
    """All findings on the limits that a policy sets on a site."""
    for release in site.releases:
        yield from _below_default(asked, release)
    yield from _equals_default(asked, site.releases)
    if Component.HANDLER in asked:
        yield from _handler_total(asked[Component.HANDLER], site)
    yield from _headroom(asked, site)


def without_high_burst(high: Limit, site: Site, at: Origin) -> Iterator[Problem]:
    """What the limits would fall to if the profile were dropped."""
    for release in site.releases:
        defaults = {component: {entry.limits[component] for entry in release.defaults} for component in Component}
        falls = [
            f"{component.program} from {high} to {' or '.join(sorted(map(str, found)))}"
            for component, found in defaults.items()
            if found != {high}
        ]
        message = f"dropping highBurst would lower {listed(falls)} on {release.kubevirt_name}"
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
            reason = f"The limit is capped at {one.bounds.cap} qps there"
            help = f"{reason} by the API server's headroom: free some, or allow more time in bootStorm.within."
            if sized.safe_qps is None:
                help = f"{reason} because no headroom is known: add apiServer.freeQPS or freeMillicores to the facts."
            yield Problem("rate-limit/target-missed", at, message, help)


def _variants(release: OperatorRelease) -> list[tuple[str, Defaults]]:
    """Each set of defaults that can hold, with the releases that have it."""
    entries, minor = release.defaults, release.kubevirt.minor
    if len(entries) == 1:
        return [
            (
                f"KubeVirt {minor}" if release.kubevirt_patch is None else f"KubeVirt {minor}.{release.kubevirt_patch}",
                entries[0],
            )
        ]
    nexts = [entry.since_patch for entry in entries[1:]]
    labels = [f"KubeVirt {minor} before {minor}.{patch}" for patch in nexts[:1]]
    return list(zip([*labels, *(f"KubeVirt {minor}.{patch} and newer" for patch in nexts)], entries, strict=True))


def _below_default(asked: Mapping[Component, Asked], release: OperatorRelease) -> Iterator[Problem]:
    for field in ("qps", "burst"):
        groups: dict[tuple[Origin, int, str], list[Component]] = defaultdict(list)
        highest: dict[tuple[Origin, int, str], int] = {}
        for component, one in asked.items():
            value = getattr(one.limit, field)
            words, default = _shortfall(component, field, value, release)
            if words:
                key = (getattr(one, field), value, words)
                groups[key].append(component)
                highest[key] = default
        for key, components in groups.items():
            origin, value, words = key
            names = listed(component.program for component in components)
            message = f"{field} {value} is below the default {words.format(names)}"
            yield Problem(
                "rate-limit/below-default", origin, message, f"Raise it to {highest[key]} or drop the policy there."
            )


def _shortfall(component: Component, field: str, value: int, release: OperatorRelease) -> tuple[str, int]:
    """`200 of {} on KubeVirt 1.7`, with a place for the names, and that default; nothing where it is not below."""
    variants = [(label, getattr(entry.limits[component], field)) for label, entry in _variants(release)]
    label, highest = max(variants, key=lambda variant: variant[1])
    if value >= highest:
        return "", 0
    others = [f"{default} on {other}" for other, default in variants if default != highest]
    if not others:
        return f"{highest} of {{}} on {release.kubevirt_name}", highest
    return f"{highest} of {{}} on {label} ({listed(others)})", highest


def _equals_default(asked: Mapping[Component, Asked], releases: Iterable[OperatorRelease]) -> Iterator[Problem]:
    entries = [entry for release in releases for entry in release.defaults]
    equal = [
        component for component, one in asked.items() if all(entry.limits[component] == one.limit for entry in entries)
    ]
    shared = len({id(one) for one in asked.values()}) == 1 and len(asked) > 1
    if shared and not {Component.API, Component.CONTROLLER, Component.WEBHOOK} <= set(equal):
        return
    where = listed(dict.fromkeys(release.kubevirt_name for release in releases))
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


def _handler_total(asked: Asked, site: Site) -> Iterator[Problem]:
    defaults = sorted({entry.limits[Component.HANDLER].qps for release in site.releases for entry in release.defaults})
    qps = asked.limit.qps
    if qps <= defaults[0]:
        return
    total = "counts once for each of them"
    if site.facts is not None:
        total = f"on {site.facts.nodes} nodes is {qps * site.facts.nodes} calls a second at worst"
    message = (
        f"virt-handler runs on every node: qps {qps} {total}; "
        f"it is {qps / defaults[0]:g} times the default of {defaults[0]}"
    )
    yield Problem(
        "rate-limit/handler-total",
        asked.qps,
        message,
        "Give virt-handler a limit of its own if the API server cannot take that.",
    )


def _headroom(asked: Mapping[Component, Asked], site: Site) -> Iterator[Problem]:
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
            f"all components together may ask for {worst} calls a second in the worst case ({before} with the "
            f"defaults); the API server can safely take {safe} more"
        )
        yield Problem(
            "rate-limit/headroom", origin, message, "Lower the limits, virt-handler's first: it counts once a node."
        )


def listed(names: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *head, last = names
    return f"{', '.join(head)} and {last}" if head else last
