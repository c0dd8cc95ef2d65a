"""`RateLimitPolicy`: the API-client rate limits of KubeVirt's components, and virt-api's replicas."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Annotated, Any, Literal

from msgspec import Meta

from renderer import sizing
from renderer.kinds import limits_file, rate_limit_advice
from renderer.kinds.base import ApiVersion, Metadata, Policy, PolicySpec, Request, Site, check_path, unneeded
from renderer.kinds.cluster_facts import ComponentLimits
from renderer.kinds.fields import Burst, Duration, Qps, Replicas, RepoPath, Strict, seconds
from renderer.kinds.limits_file import Asked
from renderer.model import Component, Limit, OperatorField, Origin, Problem, Setting, Tree
from renderer.words import listed

HIGH_BURST = Limit(200, 400)
"""What the products' own `highBurst` meant (HyperConverged v1.10.0 controllers/operands/kubevirt.go:113)."""

_FORMS = ("static", "profile", "adaptive")
_STATIC_FORMS = "qps and burst, or components, or configMapRef"


class ConfigMapRef(Strict, frozen=True, kw_only=True):
    """A ConfigMap manifest in the repository that holds the numbers."""

    path: Annotated[RepoPath, Meta(description="The manifest, from the repository root.")]


class StaticLimits(Strict, frozen=True, kw_only=True):
    """Limits in numbers: one pair for all components, or one for each, or in a ConfigMap manifest."""

    qps: Qps | None = None
    burst: Burst | None = None
    components: Annotated[ComponentLimits | None, Meta(description="Components left out keep their default.")] = None
    config_map_ref: ConfigMapRef | None = None


class BootStorm(Strict, frozen=True, kw_only=True):
    """The moment that limits are sized for: many virtual machines started at once."""

    virtual_machines: Annotated[
        Annotated[int, Meta(ge=1, le=2**53)] | None, Meta(description="Default: all of the cluster's.")
    ] = None
    within: Annotated[Duration, Meta(description="How long until all of them run.")] = "15m"


class Adaptive(Strict, frozen=True, kw_only=True):
    """Limits sized from the cluster's `ClusterFacts`."""

    boot_storm: BootStorm = BootStorm()
    guard: Annotated[
        Literal["warn", "enforce"],
        Meta(
            description="enforce: hold each component to its share of the API server's headroom, also below its "
            "default."
        ),
    ] = "warn"


class VirtApi(Strict, frozen=True, kw_only=True):
    """The Deployment that serves KubeVirt's API."""

    replicas: Replicas


class RateLimitSpec(PolicySpec, frozen=True, kw_only=True):
    """Exactly one of static, profile and adaptive."""

    static: StaticLimits | None = None
    profile: Annotated[
        Literal["highBurst", "platformDefaults"] | None,
        Meta(description="highBurst: 200/400 on every component; platformDefaults: nothing, to win by priority."),
    ] = None
    adaptive: Adaptive | None = None
    virt_api: VirtApi | None = None
    acknowledge: Annotated[
        list[Literal["replaces-annotation"]],
        Meta(
            description="replaces-annotation: with form partial, the JSON patch annotation replaces whatever was there."
        ),
    ] = []


class RateLimitPolicy(Policy, frozen=True, kw_only=True):
    """How many API calls KubeVirt's components may make."""

    api_version: ApiVersion
    kind: Literal["RateLimitPolicy"]
    metadata: Metadata
    spec: RateLimitSpec

    @property
    def needs_facts(self) -> bool:
        return self.spec.adaptive is not None

    def check(self, origin: Origin, tree: Tree) -> Iterator[Problem]:
        at = origin.below("spec")
        given = [name for name in _FORMS if getattr(self.spec, name) is not None]
        if len(given) != 1:
            message = (
                f"{listed(given)} exclude each other" if given else "one of static, profile and adaptive is missing"
            )
            place = at.below(given[-1]) if given else at
            yield Problem(
                "policy/value" if given else "policy/missing-key", place, message, "Give exactly one of them."
            )
        fixed = self.spec.virt_api is not None and self.spec.virt_api.replicas != "auto"
        if self.spec.profile == "platformDefaults" and not fixed:
            for index, word in enumerate(self.spec.acknowledge):
                yield unneeded(word, "profile: platformDefaults", at.below("acknowledge", index))
        if self.spec.static is not None:
            yield from _check_static(self.spec.static, at.below("static"), tree)

    def apply(self, origin: Origin, site: Site) -> Iterator[Request]:
        at = origin.below("spec")
        asked = yield from self._asked(at, site)
        for component, limit in asked.items():
            yield self._setting(component, limit.limit, limit.qps)
        yield from rate_limit_advice.judge(asked, site, self.spec.adaptive.guard if self.spec.adaptive else None)
        if self.spec.profile == "highBurst":
            yield from rate_limit_advice.without_high_burst(HIGH_BURST, site, at.below("profile"))
        if self.spec.virt_api is not None and self.spec.virt_api.replicas != "auto":
            place = at.below("virtApi", "replicas")
            refused = list(_check_replicas(site, place))
            yield from refused
            if not refused:
                yield self._setting(OperatorField.REPLICAS, self.spec.virt_api.replicas, place)

    def _setting(self, field: Component | OperatorField, value: Any, origin: Origin) -> Setting:
        acknowledged = "replaces-annotation" in self.spec.acknowledge
        return Setting(field, value, origin, subject="rate-limit", replaces_annotation=acknowledged)

    def _asked(self, at: Origin, site: Site) -> Generator[Request, None, dict[Component, Asked]]:
        if self.spec.static is not None:
            return _static(self.spec.static, at.below("static"), site.tree)
        if self.spec.profile == "highBurst":
            place = at.below("profile")
            return dict.fromkeys(Component, Asked(HIGH_BURST, place, place))
        if self.spec.adaptive is not None:
            return (yield from _adaptive(self.spec.adaptive, at.below("adaptive"), site))
        return {}


def _check_static(static: StaticLimits, at: Origin, tree: Tree) -> Iterator[Problem]:
    wrong = list(_check_form(static, at))
    if static.config_map_ref is not None and not wrong:
        place = at.below("configMapRef", "path")
        wrong = list(check_path(static.config_map_ref.path, place))
        if not wrong:
            yield from limits_file.read(tree, static.config_map_ref.path, place).problems
    yield from wrong
    if not wrong:
        yield from _check_bursts(_static(static, at, tree).values())


def _check_form(static: StaticLimits, at: Origin) -> Iterator[Problem]:
    pair = (static.qps, static.burst)
    forms = [pair != (None, None), static.components is not None, static.config_map_ref is not None]
    if sum(forms) != 1:
        yield Problem("policy/value", at, "static needs exactly one form", f"Give {_STATIC_FORMS}.")
    elif forms[0] and None in pair:
        missing, other = ("qps", "burst") if static.qps is None else ("burst", "qps")
        message = f"{missing} is missing: half a limit is refused, or does nothing"
        yield Problem("policy/missing-key", at, message, f"Add {missing}: beside {other}.")
    elif static.components is not None and not static.components.limits:
        help = f"Name at least one of {', '.join(Component)}."
        yield Problem("policy/missing-key", at.below("components"), "components is empty", help)


def _check_bursts(found: Iterable[Asked]) -> Iterator[Problem]:
    """Each pair of numbers once: one may be for all components."""
    for asked in {id(asked): asked for asked in found}.values():
        qps, burst = asked.limit.qps, asked.limit.burst
        if burst < qps:
            message = f"burst {burst} is below qps {qps}: the bucket never holds a second's worth of calls"
            help = f"Raise burst; KubeVirt's own defaults use {2 * qps}."
            yield Problem("rate-limit/burst-below-qps", asked.burst, message, help)


def _static(static: StaticLimits, at: Origin, tree: Tree) -> dict[Component, Asked]:
    if static.config_map_ref is not None:
        return limits_file.read(tree, static.config_map_ref.path, at).limits
    if static.components is not None:
        return {
            component: Asked(
                limit, at.below("components", component, "qps"), at.below("components", component, "burst")
            )
            for component, limit in static.components.limits.items()
        }
    if static.qps is None or static.burst is None:
        return {}
    return dict.fromkeys(Component, Asked(Limit(static.qps, static.burst), at.below("qps"), at.below("burst")))


def _adaptive(adaptive: Adaptive, at: Origin, site: Site) -> Generator[Request, None, dict[Component, Asked]]:
    if site.facts is None:
        yield Problem(
            "rate-limit/no-facts",
            at,
            "an adaptive policy needs measured facts, and there are none for these clusters",
            "Commit a ClusterFacts document for each of them.",
        )
        return {}
    storm = adaptive.boot_storm.virtual_machines
    demand = sizing.Demand(
        nodes=site.facts.nodes,
        virtual_machines=site.facts.virtual_machines if storm is None else storm,
        seconds=seconds(adaptive.boot_storm.within),
    )
    sized = sizing.size(
        demand=demand,
        headroom=site.facts.headroom,
        unhealthy=site.facts.unhealthy,
        enforce=adaptive.guard == "enforce",
        previous=site.facts.previous,
    )
    if adaptive.guard == "enforce" and sized.safe_qps is None:
        message = "guard: enforce has nothing to enforce: the facts do not tell the API server's headroom"
        help = "Add apiServer.freeQPS or apiServer.freeMillicores to the ClusterFacts."
        yield Problem("rate-limit/headroom", at.below("guard"), message, help)
    yield from rate_limit_advice.missed(sized, demand, at)
    return {
        component: Asked(one.limit, at, at)
        for component, one in sized.components.items()
        if any(entry.limits[component] != one.limit for release in site.releases for entry in release.defaults)
    }


def _check_replicas(site: Site, at: Origin) -> Iterator[Problem]:
    help = "Write replicas: auto there: KubeVirt scales virt-api with the nodes by itself."
    if site.topology == "single-node" and site.releases[0].hyperconverged:
        # v1.18.1 controllers/handlers/kubevirt.go:896
        message = "HyperConverged sets spec.infra.replicas to 1 on a single node, which wins over virt-api's own number"
        yield Problem("release/unsupported", at, message, help)
    for release in site.releases:
        if not release.kubevirt.replicas_patch:
            yield Problem(
                "release/unsupported",
                at,
                f"{release.kubevirt_name} overwrites the number of virt-api replicas; KubeVirt 1.1 and newer keep it",
                help,
            )
