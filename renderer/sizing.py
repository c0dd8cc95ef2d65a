"""Rate limits from a cluster's size, its boot storm and the headroom of its API server.

Integers only: needs are in milli-QPS and rounded up, shares of the headroom in QPS and rounded down.

A limit in place is changed only where demand or headroom has left a band around it, so that wavering facts
do not become pull requests: from the first result that a need decides on, needs that stay within 1.38 to 1 change
a limit at most twice, and headroom that stays within 1.2 to 1 at most once, however long they waver.  A limit above
the tolerated headroom is lowered to the cap first.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import assert_never

from renderer.model import Component, Limit
from renderer.values import Value


class Demand(Value, frozen=True, kw_only=True):
    """What must be served: `virtual_machines` started at once on `nodes` schedulable nodes within `seconds`.

    Raises `ValueError` for fewer than 1 node, 0 virtual machines or 1 second.
    """

    nodes: int
    virtual_machines: int
    seconds: int

    def __post_init__(self) -> None:
        if self.nodes < 1 or self.virtual_machines < 0 or self.seconds < 1:
            raise ValueError(f"{self}: at least 1 node, 0 virtual machines and 1 second")


class Headroom(Value, frozen=True, kw_only=True):
    """What the control plane has to spare, each `None` where it is not known.

    Raises `ValueError` for a negative figure.
    """

    free_millicores: int | None = None
    free_qps: int | None = None

    def __post_init__(self) -> None:
        if (self.free_millicores or 0) < 0 or (self.free_qps or 0) < 0:
            raise ValueError(f"{self}: headroom is not negative")


class Bounds(Value, frozen=True, kw_only=True):
    """The lowest and the highest sensible QPS of one process; both are values of the grid."""

    floor: int
    cap: int

    def clamp(self, qps: int) -> int:
        """The nearest QPS within the bounds."""
        return max(self.floor, min(self.cap, qps))


class Step(StrEnum):
    """How a limit came out of the one that was in place before."""

    NEW = "new"
    KEEP = "keep"
    KEEP_OVER_CAP = "keep-over-cap"
    RAISE = "raise"
    RAISE_TO_FLOOR = "raise-to-floor"
    LOWER = "lower"
    LOWER_TO_CAP = "lower-to-cap"


class Sized(Value, frozen=True, kw_only=True):
    """The limit of each process of a component.

    `seconds_milli` is how long the storm takes under `limit`, in milliseconds, rounded up.  `missed` says that it
    takes too long.
    """

    limit: Limit
    step: Step
    bounds: Bounds
    seconds_milli: int
    missed: bool


class Sizing(Value, frozen=True, kw_only=True):
    """The result for all four components.

    `safe_qps` is the load that the API server can take, `None` where its headroom is not known.
    """

    components: Mapping[Component, Sized]
    safe_qps: int | None


class _Range(Value, frozen=True, kw_only=True):
    """QPS: KubeVirt's own default, the least and most to render; and the percentage of the safe load."""

    default: int
    least: int
    most: int
    percent: int


# The defaults are KubeVirt 1.7's: anything lower, with headroom to spare, only slows a storm down.  Of the
# highest, 400 has a published result for the controller (kubevirt/kubevirt#7879), and 200 is what highBurst
# gives the handler.  The least and the percentages are this project's choice.
_RANGES: Mapping[Component, _Range] = {
    Component.API: _Range(default=200, least=50, most=400, percent=12),
    Component.CONTROLLER: _Range(default=200, least=50, most=400, percent=50),
    Component.HANDLER: _Range(default=50, least=10, most=200, percent=25),
    Component.WEBHOOK: _Range(default=200, least=50, most=400, percent=13),
}

# And their tenfold, hundredfold…  Each step is wider than the band of 1.2; the promise above rests on that.
_GRID = (10, 15, 20, 30, 40, 50, 75, 100)
_BURST_SECONDS = 2  # burst : qps in every KubeVirt default
_BACKOFF = (100, 90, 81, 72, 65, 59)  # percent; 0.9 a step, as AIMDLimit of Netflix/concurrency-limits


def size(
    *, demand: Demand, headroom: Headroom, unhealthy: int, enforce: bool, previous: Mapping[Component, Limit]
) -> Sizing:
    """The limits for a demand, moved as little as possible from the `previous` ones (their QPS; none: empty).

    `unhealthy` counts the latest observations in a row that found the API server overloaded.  `enforce` holds
    each component to its share of the safe load even below KubeVirt's defaults, where that load is known.

    Raises `ValueError` where `unhealthy` is negative.
    """
    safe, tolerated = safe_qps(headroom, unhealthy), safe_qps(_widened(headroom), unhealthy)
    sized = {}
    for component in Component:
        within = bounds(component, demand.nodes, safe, enforce=enforce)
        around = bounds(component, demand.nodes, tolerated, enforce=enforce)
        before = previous[component].qps if component in previous else None
        qps, step = decide(need_milli(component, demand), before, bounds=within, tolerated=around)
        sized[component] = _sized(component, demand, qps, step, within)
    return Sizing(components=sized, safe_qps=safe)


def replicas(nodes: int) -> int:
    """How many virt-api pods KubeVirt runs by itself on that many schedulable nodes (its `apply/apps.go`)."""
    return 1 if nodes == 1 else max(2, nodes // 10)


def processes(component: Component, nodes: int) -> int:
    """How many processes have a token bucket and use it; of virt-controller's pods only the leader does."""
    match component:
        case Component.CONTROLLER:
            return 1
        case Component.HANDLER:
            return nodes
        case Component.API | Component.WEBHOOK:
            return replicas(nodes)
        case _:
            assert_never(component)


def worst_case(limits: Mapping[Component, Limit], nodes: int) -> Limit:
    """What all processes of the given components together can ask of the API server."""
    counts = {component: processes(component, nodes) for component in limits}
    return Limit(
        qps=sum(counts[component] * limit.qps for component, limit in limits.items()),
        burst=sum(counts[component] * limit.burst for component, limit in limits.items()),
    )


def safe_qps(headroom: Headroom, unhealthy: int) -> int | None:
    """The load in QPS that the API server can take on top of today's; `None` where no headroom is known.

    1000 QPS cost 9 cores (hosted control planes measurement, OpenShift docs hcp-load-based-limit).  Three
    quarters of what is free are safe (Netflix/concurrency-limits); each unhealthy observation in a row takes
    a tenth off.

    Raises `ValueError` where `unhealthy` is negative.
    """
    if unhealthy < 0:
        raise ValueError(f"{unhealthy} unhealthy observations")
    by_cpu = None if headroom.free_millicores is None else headroom.free_millicores // 9
    known = [free for free in (headroom.free_qps, by_cpu) if free is not None]
    backoff = _BACKOFF[min(unhealthy, len(_BACKOFF) - 1)]
    return min(known) * 75 * backoff // 10_000 if known else None


def calls(component: Component, demand: Demand) -> int:
    """The API calls that the busiest process of a component makes in the storm.

    virt-controller: 27 a virtual machine (kubevirt/ci-performance-benchmarks; kubevirt/kubevirt#7879).  The
    others are estimates: virt-handler 8, with 1.5 times the mean on the busiest node; virt-api 1 from each of
    its two clients.
    """
    machines, nodes = demand.virtual_machines, demand.nodes
    match component:
        case Component.CONTROLLER:
            return 27 * machines
        case Component.HANDLER:
            return 8 * min(machines, _ceil(3 * machines, 2 * nodes))
        case Component.API | Component.WEBHOOK:
            return _ceil(machines, replicas(nodes))
        case _:
            assert_never(component)


def need_milli(component: Component, demand: Demand) -> int:
    """The sustained rate in milli-QPS, rounded up, at which a full token bucket ends the storm in time."""
    return _ceil(1000 * calls(component, demand), demand.seconds + _BURST_SECONDS)


def bounds(component: Component, nodes: int, safe: int | None, *, enforce: bool) -> Bounds:
    """The range of one process's QPS by its share of the safe load; KubeVirt's default if that is unknown."""
    allowed = _RANGES[component]
    if safe is None:
        return Bounds(floor=allowed.default, cap=allowed.default)
    share = floor_grid(safe * allowed.percent // (100 * processes(component, nodes)))
    floor = min(allowed.default, max(allowed.least, share)) if enforce else allowed.default
    return Bounds(floor=floor, cap=max(floor, min(allowed.most, share)))


def decide(need: int, previous: int | None, *, bounds: Bounds, tolerated: Bounds) -> tuple[int, Step]:
    """The next QPS for a need in milli-QPS, and why; `tolerated` are the bounds with a fifth more headroom.

    A new value has a margin of 15 % (the vertical pod autoscaler's recommendation margin).  It is lowered
    once it is a further 20 % too high (addon-resizer's acceptance offset): 1.15 times 1.2 is 1.38.
    """
    higher = bounds.clamp(ceil_grid(_ceil(need * 115, 100_000)))
    # The tolerated floor: where the guard is enforced, the floor itself follows the headroom up and down.
    lower = max(tolerated.floor, ceil_grid(_ceil(need * 138, 100_000)))
    if previous is None:
        return higher, Step.NEW
    if previous < bounds.floor:
        return higher, Step.RAISE_TO_FLOOR
    if previous > tolerated.cap:
        return bounds.cap, Step.LOWER_TO_CAP
    if previous > lower:
        return bounds.clamp(lower), Step.LOWER
    if previous > bounds.cap:
        return previous, Step.KEEP_OVER_CAP
    if need > 1000 * previous and higher > previous:
        return higher, Step.RAISE
    return previous, Step.KEEP


def highest(component: Component) -> int:
    """The most QPS that one process of a component is ever given, whatever the headroom."""
    return _RANGES[component].most


def ceil_grid(qps: int) -> int:
    """The lowest grid value that is not below `qps`."""
    scale = 1
    while qps > _GRID[-1] * scale:
        scale *= 10
    return next(value * scale for value in _GRID if value * scale >= qps)


def floor_grid(qps: int) -> int:
    """The highest grid value that is not above `qps`, 0 where there is none."""
    scale = 1
    while qps > _GRID[-1] * scale:
        scale *= 10
    return max((value * scale for value in _GRID if value * scale <= qps), default=0)


def _sized(component: Component, demand: Demand, qps: int, step: Step, within: Bounds) -> Sized:
    limit = Limit(qps=qps, burst=_BURST_SECONDS * qps)
    seconds_milli = max(0, _ceil(1000 * (calls(component, demand) - limit.burst), qps))
    return Sized(
        limit=limit,
        step=step,
        bounds=within,
        seconds_milli=seconds_milli,
        missed=seconds_milli > 1000 * demand.seconds,
    )


def _widened(headroom: Headroom) -> Headroom:
    """A fifth more, before any rounding, so that it covers every headroom up to 1.2 times this one."""
    raw = (headroom.free_millicores, headroom.free_qps)
    millicores, qps = (None if free is None else free * 6 // 5 for free in raw)
    return Headroom(free_millicores=millicores, free_qps=qps)


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
