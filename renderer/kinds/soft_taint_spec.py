"""The fields of `softTaint`: nodes with much load are marked, so that new machines go elsewhere."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from renderer.kinds.fields import Duration, Image, Strict, seconds

FOLDER = "soft-tainter"
"""Of a cluster's overlay."""
CONFIG_FILE = "configmap"
"""The file there that holds the configuration, without its ending."""

Percent = Annotated[int, Meta(ge=0, le=100)]

BESIDE_THE_MODE = (
    "hysteresisPoints",
    "maxTaintedPercent",
    "missingSample",
    "staleAfter",
    "every",
    "runAs",
    "admission",
)
"""What only our own job reads; `image` is left out, because it has to be given."""


class SoftTaint(Strict, frozen=True, kw_only=True):
    """The in-cluster job that keeps `PreferNoSchedule` taints in step with measured load."""

    mode: Annotated[
        Literal["Enforce", "DryRun", "RemoveOnly"],
        Meta(description="Enforce: write taints. DryRun: only log. RemoveOnly: take ours away, and do nothing else."),
    ]
    hysteresis_points: Annotated[
        Percent, Meta(description="How far load must fall below the upper bound before a taint goes.")
    ] = 5
    max_tainted_percent: Annotated[
        Percent, Meta(description="The largest share of the nodes that is called over-utilized, worst first.")
    ] = 50
    missing_sample: Annotated[
        Literal["Keep", "Remove"], Meta(description="What becomes of the taints of a node without a usable sample.")
    ] = "Keep"
    stale_after: Annotated[
        Duration, Meta(description="After so long without a good pass our taints are removed; also a sample's age.")
    ] = "10m"
    every: Annotated[Duration, Meta(description="Between two passes.")] = "2m"
    run_as: Annotated[
        Literal["CronJob", "Deployment"],
        Meta(description="CronJob: a pod for each pass. Deployment: two pods, one of which works."),
    ] = "CronJob"
    admission: Annotated[
        Literal["policy", "none"],
        Meta(description="policy: a ValidatingAdmissionPolicy holds the job to its two taints (Kubernetes 1.30)."),
    ] = "policy"
    image: Annotated[Image, Meta(description="The job's image; pin it by digest.")]

    @property
    def every_seconds(self) -> int:
        return seconds(self.every)

    @property
    def stale_seconds(self) -> int:
        return seconds(self.stale_after)
