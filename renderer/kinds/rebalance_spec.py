"""The fields of a `RebalancePolicy`, and what they come to once defaults are filled in."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from renderer.kinds.base import PolicySpec
from renderer.kinds.fields import DnsLabel, DnsName, Duration, RepoPath, Strict, seconds
from renderer.kinds.soft_taint_spec import SoftTaint

Profile: TypeAlias = Literal[
    "AffinityAndTaints",
    "CompactAndScale",
    "EvictPodsWithLocalStorage",
    "EvictPodsWithPVC",
    "KubeVirtRelieveAndMigrate",
    "LifecycleAndUtilization",
    "LongLifecycle",
    "SoftTopologyAndDuplicates",
    "TopologyAndDuplicates",
]
Deviation: TypeAlias = Literal["Low", "Medium", "High", "AsymmetricLow", "AsymmetricMedium", "AsymmetricHigh"]
Static: TypeAlias = Literal["Low", "Medium", "High"]
Metric: TypeAlias = Literal[
    "CPUUsage",
    "CPUPressure",
    "CPUPressureByUtilization",
    "CPUCombined",
    "CPUMemoryCombined",
    "MemoryPressure",
    "IOPressure",
]
Pods: TypeAlias = Annotated[int, Meta(ge=1, le=2_147_483_647)]

RELIEVE: Profile = "KubeVirtRelieveAndMigrate"
LOAD_PROFILES: frozenset[str] = frozenset(("KubeVirtRelieveAndMigrate", "LifecycleAndUtilization", "LongLifecycle"))
"""Those that evict from over-utilized nodes (the plugin LowNodeUtilization)."""
MODIFIERS: frozenset[str] = frozenset(("EvictPodsWithLocalStorage", "EvictPodsWithPVC"))
"""Those that only change what others may evict."""


class Query(Strict, frozen=True, kw_only=True):
    """An instant query of the policy's own."""

    query: Annotated[
        str,
        Meta(
            description="PromQL that gives one sample of 0 to 1 for each node, with the node's name as label instance.",
            min_length=1,
            max_length=4096,
        ),
    ]


Utilization: TypeAlias = Annotated[
    Metric | Query,
    Meta(title="utilization", description="How load is measured; default CPUMemoryCombined where machines are moved."),
]


class ThresholdChoice(Strict, frozen=True, kw_only=True):
    """Which nodes have too little or too much load; at most one of the two."""

    deviation: Annotated[
        Deviation | None, Meta(description="Points below and above the average; default AsymmetricLow (0 and 10).")
    ] = None
    static: Annotated[
        Static | None, Meta(description="Low 10 and 30, Medium 20 and 50, High 40 and 70 points of the scale.")
    ] = None


class Evictions(Strict, frozen=True, kw_only=True):
    """How many pods one cycle may evict."""

    per_node: Annotated[Pods | None, Meta(description="From one node; default 2.")] = None
    total: Annotated[Pods | None, Meta(description="From all nodes; default 5.")] = None


class NamespaceChoice(Strict, frozen=True, kw_only=True):
    """Where pods may be evicted; at most one of the two."""

    excluded: Annotated[Annotated[list[DnsLabel], Meta(min_length=1)] | None, Meta(description="Never from these.")] = (
        None
    )
    included: Annotated[
        Annotated[list[DnsLabel], Meta(min_length=1)] | None,
        Meta(description="From these only; not with profiles that balance load, which know exclusion only."),
    ] = None


class PriorityThreshold(Strict, frozen=True, kw_only=True):
    """Pods of this priority and above stay; exactly one of the two."""

    class_name: Annotated[DnsName | None, Meta(description="The priority of a PriorityClass.")] = None
    value: Annotated[
        Annotated[int, Meta(ge=-(2**31), le=2_000_000_000)] | None, Meta(description="The priority as a number.")
    ] = None


class MigrationCooldown(Strict, frozen=True, kw_only=True):
    """How long a machine that was moved is left alone: longer with every move within the window."""

    base: Annotated[Duration, Meta(description="After the first move within the window.")] = "15m"
    max: Annotated[Duration, Meta(description="However many moves there were.")] = "6h"
    window: Annotated[Duration, Meta(description="How far back moves count.")] = "48h"


class PressureStall(Strict, frozen=True, kw_only=True):
    """Pressure metrics of the kernel (PSI)."""

    enable: Annotated[
        bool,
        Meta(description="Render the MachineConfig with psi=1, which reboots the nodes, in a directory of its own."),
    ] = False


class RebalanceSpec(PolicySpec, frozen=True, kw_only=True):
    """How virtual machines are moved from loaded nodes."""

    mode: Annotated[
        Literal["Automatic", "Predictive"], Meta(description="Predictive: only simulate evictions and count them.")
    ]
    interval: Annotated[Duration, Meta(description="Between two cycles.")] = "3m"
    profiles: Annotated[
        tuple[Profile, ...],
        Meta(description="What the descheduler does, in release-neutral names.", min_length=1),
    ] = (RELIEVE,)
    thresholds: ThresholdChoice = ThresholdChoice()
    utilization: Utilization | None = None
    evictions: Evictions = Evictions()
    namespaces: NamespaceChoice = NamespaceChoice()
    priority_threshold: PriorityThreshold | None = None
    pod_lifetime: Annotated[
        Duration | None, Meta(description="LifecycleAndUtilization evicts pods older than this; default 24h.")
    ] = None
    migration_cooldown: MigrationCooldown | None = None
    pressure_stall: PressureStall = PressureStall()
    manifests: Annotated[
        list[RepoPath],
        Meta(
            description="Globs of manifests to check against: Scheduler, HyperConverged, MachineConfig.",
            examples=[["platform/**/*.yaml"]],
        ),
    ] = []
    on_removal: Annotated[
        Literal["Delete", "Keep"],
        Meta(description="What the delivery engine does with the objects once this policy is gone."),
    ] = "Delete"
    soft_taint: Annotated[
        SoftTaint | None,
        Meta(description="Mark loaded nodes with soft taints where the platform does not; none without it."),
    ] = None

    @property
    def moves_machines(self) -> bool:
        """Whether the profile made for virtual machines is among them."""
        return RELIEVE in self.profiles

    @property
    def balances_load(self) -> bool:
        """Whether any profile looks at the load of nodes."""
        return bool(LOAD_PROFILES.intersection(self.profiles))

    @property
    def deviation(self) -> Deviation | None:
        """The deviation that holds, with its default where machines are moved."""
        if self.thresholds.deviation is None and self.thresholds.static is None and self.moves_machines:
            return "AsymmetricLow"
        return self.thresholds.deviation

    @property
    def static(self) -> Static | None:
        """The static thresholds that hold; Medium is every release's default where no deviation does."""
        return self.thresholds.static if self.deviation or self.thresholds.static else "Medium"

    @property
    def metric(self) -> Metric | Query | None:
        """What load is measured by; None stands for the requests of pods."""
        if not self.balances_load:
            return None
        return self.utilization or ("CPUMemoryCombined" if self.moves_machines else None)

    @property
    def per_node(self) -> int:
        return self.evictions.per_node or 2

    @property
    def total(self) -> int:
        return self.evictions.total or 5

    @property
    def interval_seconds(self) -> int:
        return seconds(self.interval)
