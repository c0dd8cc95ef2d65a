"""`ClusterFacts`: measured facts, committed, so that adaptive policies stay deterministic and reviewable."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, field

from renderer.kinds.base import ApiVersion, Facts
from renderer.kinds.cluster import ClusterMetadata
from renderer.kinds.fields import Burst, Count, Qps, Strict
from renderer.model import Component, Limit, Origin, Problem, Tree
from renderer.sizing import Headroom

_SLO_MILLISECONDS = 1000
"""Mutating calls answer within a second at the 99th percentile (Kubernetes scalability SLOs)."""


class LimitFields(Strict, frozen=True, kw_only=True):
    """A rate limit: a token bucket."""

    qps: Qps
    burst: Burst

    @property
    def limit(self) -> Limit:
        return Limit(self.qps, self.burst)


class ComponentLimits(Strict, frozen=True, kw_only=True):
    """A rate limit for each component named."""

    api: Annotated[LimitFields | None, Meta(description="virt-api.")] = None
    controller: Annotated[LimitFields | None, Meta(description="virt-controller.")] = None
    handler: Annotated[LimitFields | None, Meta(description="virt-handler, on every node.")] = None
    webhook: Annotated[LimitFields | None, Meta(description="The client that virt-api's webhooks use.")] = None

    @property
    def limits(self) -> dict[Component, Limit]:
        """Those that are given, in order of name."""
        found = {component: getattr(self, component) for component in Component}
        return {component: fields.limit for component, fields in found.items() if fields is not None}


class ApiServer(Strict, frozen=True, kw_only=True):
    """What was measured at the API server."""

    free_millicores: Annotated[Count | None, Meta(description="Spare control-plane CPU.")] = None
    free_qps: Annotated[Count | None, Meta(description="Spare requests a second.")] = field(
        name="freeQPS", default=None
    )
    mutating_p99_milliseconds: Annotated[Count | None, Meta(description="Latency of mutating calls.")] = field(
        name="mutatingP99Milliseconds", default=None
    )
    rejected_requests: Annotated[Count | None, Meta(description="Requests that priority and fairness rejected.")] = None


class FactsSpec(Strict, frozen=True, kw_only=True):
    """What was measured in the cluster."""

    schedulable_nodes: Annotated[int, Meta(ge=1, le=2**31, description="Nodes that virtual machines can run on.")]
    virtual_machines: Annotated[Count, Meta(description="Virtual machines defined in the cluster.")]
    api_server: Annotated[ApiServer, Meta(description="Evidence, and the headroom that limits may use.")] = ApiServer()
    unhealthy_observations: Annotated[
        Count,
        Meta(description="Latest observations in a row that found the API server overloaded; steers the back-off."),
    ] = 0
    previous: Annotated[
        ComponentLimits, Meta(description="The values last adopted; limits move away from them only when they must.")
    ] = ComponentLimits()
    observed_at: Annotated[str | None, Meta(description="Evidence for people; never rendered or compared.")] = None


class ClusterFacts(Strict, frozen=True, kw_only=True):
    """The measured facts of one cluster, found by its name."""

    api_version: ApiVersion
    kind: Literal["ClusterFacts"]
    metadata: ClusterMetadata
    spec: FactsSpec

    def check(self, origin: Origin, tree: Tree) -> Iterator[Problem]:
        """Whether the raw figures agree with the count that steers the back-off."""
        server, place = self.spec.api_server, origin.below("spec", "unhealthyObservations")
        if "unhealthyObservations" not in origin.document.data["spec"]:
            place = origin.below("spec", "apiServer")
        signs = _signs(server)
        measured = server.mutating_p99_milliseconds is not None and server.rejected_requests is not None
        if signs and self.spec.unhealthy_observations == 0:
            yield Problem(
                "facts/disagree",
                place,
                f"the API server is called healthy, but {' and '.join(signs)}",
                "Only unhealthyObservations steers the back-off: count this observation in it, or measure again.",
            )
        if measured and not signs and self.spec.unhealthy_observations > 0:
            yield Problem(
                "facts/disagree",
                place,
                f"{self.spec.unhealthy_observations} unhealthy observations are counted, but the figures are healthy",
                "Set it to 0 if the latest observation was healthy.",
            )

    def facts(self, origin: Origin) -> Facts:
        """The values that policies use."""
        server = self.spec.api_server
        return Facts(
            origin=origin,
            nodes=self.spec.schedulable_nodes,
            virtual_machines=self.spec.virtual_machines,
            headroom=Headroom(free_millicores=server.free_millicores, free_qps=server.free_qps),
            unhealthy=self.spec.unhealthy_observations,
            previous=self.spec.previous.limits,
        )


def _signs(server: ApiServer) -> list[str]:
    p99, rejected = server.mutating_p99_milliseconds or 0, server.rejected_requests or 0
    signs = [f"mutating calls take {p99} ms at the 99th percentile"] if p99 > _SLO_MILLISECONDS else []
    return signs + ([f"it rejected {rejected} requests"] if rejected else [])
