"""What each minor release of the upstream descheduler accepts.

Sources are files of the kubernetes-sigs/descheduler repository at the tag that first has the behaviour.  An unknown
key at the top of a policy is dropped in silence, an unknown plugin argument ends the program: exactly what a release
knows is rendered for it (v0.36.0 pkg/api/v1alpha2/conversion.go:40, pkg/descheduler/scheme/scheme.go:41).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

API_VERSION = "descheduler/v1alpha2"
NAMESPACE = "kube-system"
IMAGE = "registry.k8s.io/descheduler/descheduler"
PORT = 10258
"""Health and metrics, over HTTPS (v0.36.0 kubernetes/deployment/deployment.yaml)."""
TOKEN_KEY = "prometheusAuthToken"  # noqa: S105  (the name of a key, v0.36.0 pkg/descheduler/prom_client_controller.go:43)


@dataclass(frozen=True, slots=True)
class Release:
    """One minor release.

    `total_limit`: `maxNoOfPodsToEvictTotal`.  `background`: the gate EvictionsInBackground.  `prometheus`: metrics
    providers, own queries and the plugin's limit per node.  `protections`: the evictor's `podProtections`, in place
    of booleans, and `noEvictionPolicy`.  `budgets` and `claims`: it waits for a watch on those objects.
    `needs_token`: it ends at once when it is to use the token of its own pod.
    """

    minor: str
    newest: str
    total_limit: bool = True  # v0.31.0 pkg/api/v1alpha2/types.go:42
    background: bool = True  # v0.32.0 pkg/features/features.go:41, alpha and off by default up to v0.36.0
    prometheus: bool = True  # v0.33.0 pkg/api/v1alpha2/types.go:53, nodeutilization/types.go:51
    protections: bool = True  # v0.34.0 pkg/framework/plugins/defaultevictor/types.go:34
    budgets: bool = True  # v0.32.0 pkg/descheduler/descheduler.go:139
    claims: bool = False  # v0.35.0 pkg/descheduler/descheduler.go:128
    needs_token: bool = False  # kubernetes-sigs/descheduler issue 1840, fixed in v0.36.0 by e56144c7a

    @property
    def title(self) -> str:
        return f"descheduler {self.minor}"


def _before_0_32(minor: str, newest: str, *, total_limit: bool = False) -> Release:
    return Release(
        minor, newest, total_limit=total_limit, background=False, prometheus=False, protections=False, budgets=False
    )


RELEASES: dict[str, Release] = {
    entry.minor: entry
    for entry in (
        _before_0_32("0.28", "0.28.1"),
        _before_0_32("0.29", "0.29.0"),
        _before_0_32("0.30", "0.30.2"),
        _before_0_32("0.31", "0.31.0", total_limit=True),
        Release("0.32", "0.32.2", prometheus=False, protections=False),
        Release("0.33", "0.33.0", protections=False),
        Release("0.34", "0.34.0"),
        Release("0.35", "0.35.1", claims=True, needs_token=True),
        Release("0.36", "0.36.0", claims=True),
    )
}
MINORS = tuple(RELEASES)


def common(releases: Iterable[Release]) -> Release:
    """What all of the releases accept, under the name of the first; what any of them needs."""
    first, *others = listed = list(releases)
    if not others:
        return first
    return Release(
        first.minor,
        first.newest,
        total_limit=all(one.total_limit for one in listed),
        background=all(one.background for one in listed),
        prometheus=all(one.prometheus for one in listed),
        protections=all(one.protections for one in listed),
        budgets=any(one.budgets for one in listed),
        claims=any(one.claims for one in listed),
        needs_token=any(one.needs_token for one in listed),
    )
