"""What each KubeVirt release accepts: rate limiters and their defaults, replicas, the reference policy.

Sources are files of the KubeVirt repository at the tag that first has the behaviour.
"""

from __future__ import annotations

from renderer.model import Component, Limit, Path
from renderer.values import Value

API_VERSION = "kubevirt.io/v1"
"""Served by every release in the table (0.58 and 0.59 store v1alpha3)."""

REFERENCE_POLICY_GATE = "InstancetypeReferencePolicy"


class Defaults(Value, frozen=True):
    """The rate limit that each component has when nothing is set.

    `since_patch` is the first patch release of the minor that has them.
    """

    since_patch: int
    limits: dict[Component, Limit]
    source: str


class KubeVirtRelease(Value, frozen=True):
    """One minor release.

    `gated`: the reference policy does nothing without its feature gate.  `tells_descheduler`: pods of machines that
    are migrating say so.
    """

    minor: str
    defaults: tuple[Defaults, ...]
    replicas_patch: bool
    reference_policy: bool
    gated: bool
    tells_descheduler: bool

    def possible_defaults(self, patch: int | None) -> tuple[Defaults, ...]:
        """The defaults that can hold: one where the patch release is known or does not matter."""
        if patch is None:
            return self.defaults
        return tuple(entry for entry in self.defaults if entry.since_patch <= patch)[-1:]


_SLOW, _FAST, _NODE = Limit(5, 10), Limit(200, 400), Limit(50, 100)


def _defaults(since_patch: int, *, api: Limit, handler: Limit, source: str) -> Defaults:
    limits = {
        Component.API: api,
        Component.CONTROLLER: _FAST,
        Component.HANDLER: handler,
        Component.WEBHOOK: _FAST,
    }
    return Defaults(since_patch, limits, source)


_FROM_0_55 = _defaults(0, api=_SLOW, handler=_SLOW, source="v0.55.0 pkg/virt-config/virt-config.go:79")
_FROM_1_6_4 = _defaults(4, api=_FAST, handler=_SLOW, source="v1.6.4 pkg/virt-config/virt-config.go:87")
_FROM_1_7 = _defaults(0, api=_FAST, handler=_NODE, source="v1.7.0 pkg/virt-config/virt-config.go:80")


def _release(
    minor: str,
    *defaults: Defaults,
    replicas_patch: bool = True,  # from v1.1.0, pkg/virt-operator/resource/apply/apps.go:63
    reference_policy: bool = True,  # from v1.4.0, staging/src/kubevirt.io/api/core/v1/types.go:2550
    gated: bool = False,  # v1.4.0 pkg/virt-config/feature-gates.go:89; v1.5.0 featuregate/active.go:96
    tells_descheduler: bool = True,  # from v1.3.0, pkg/virt-controller/watch/descheduler/descheduler.go:42
) -> KubeVirtRelease:
    return KubeVirtRelease(minor, defaults, replicas_patch, reference_policy, gated, tells_descheduler)


RELEASES: dict[str, KubeVirtRelease] = {
    entry.minor: entry
    for entry in (
        _release("0.58", _FROM_0_55, replicas_patch=False, reference_policy=False, tells_descheduler=False),
        _release("0.59", _FROM_0_55, replicas_patch=False, reference_policy=False, tells_descheduler=False),
        _release("1.0", _FROM_0_55, replicas_patch=False, reference_policy=False, tells_descheduler=False),
        _release("1.1", _FROM_0_55, reference_policy=False, tells_descheduler=False),
        _release("1.2", _FROM_0_55, reference_policy=False, tells_descheduler=False),
        _release("1.3", _FROM_0_55, reference_policy=False),
        _release("1.4", _FROM_0_55, gated=True),
        _release("1.5", _FROM_0_55, gated=True),
        _release("1.6", _FROM_0_55, _FROM_1_6_4),
        _release("1.7", _FROM_1_7),
        _release("1.8", _FROM_1_7),
        _release("1.9", _FROM_1_7),
    )
}


PARALLEL_MIGRATIONS, OUTBOUND_MIGRATIONS = 5, 2
"""Defaults in a cluster and out of one node, of every release (v1.9.0 pkg/virt-config/virt-config.go)."""


# Where a setting lives in the KubeVirt object.  Through HyperConverged's JSON patch annotation, one operation
# adds the deepest part whose parent HyperConverged always writes: `depth` counts its steps.
class Field(Value, frozen=True):
    """The path of a setting in `spec`; `depth` is the length of the path that a JSON patch operation adds."""

    path: Path
    depth: int = 3


def limiter(component: Component) -> Field:
    """The token bucket of one component (from v0.45.0, staging/src/kubevirt.io/client-go/api/v1/types.go:1981)."""
    bucket = ("restClient", "rateLimiter", "tokenBucketRateLimiter")
    return Field(("spec", "configuration", f"{component}Configuration", *bucket))


REFERENCE_POLICY = Field(("spec", "configuration", "instancetype", "referencePolicy"))
GATES = Field(("spec", "configuration", "developerConfiguration", "featureGates", "-"), depth=5)
COMPONENT_PATCHES = Field(("spec", "customizeComponents", "patches", "-"), depth=2)


def replicas_patch(count: int) -> dict[str, str]:
    """The only form in which virt-api's replica rule leaves a number alone: a JSON `replace` of `/spec/replicas`
    (from v1.1.0; v1.9.0 pkg/virt-operator/resource/apply/apps.go:564)."""
    return {
        "patch": f'[{{"op":"replace","path":"/spec/replicas","value":{count}}}]',
        "resourceName": "virt-api",
        "resourceType": "Deployment",
        "type": "json",
    }
