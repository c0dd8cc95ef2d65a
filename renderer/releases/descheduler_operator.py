"""What each schema of the Kube Descheduler Operator accepts: profiles, fields, metrics, and how it takes conflicts.

Sources are files of the cluster-kube-descheduler-operator repository at its release branches; schema 4.23 is its main
branch.  The CRD is `manifests/kube-descheduler-operator.crd.yaml` of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from renderer.releases.versions import Version

API_VERSION = "operator.openshift.io/v1"
NAMESPACE = "openshift-kube-descheduler-operator"
NAME = "cluster"
"""Others are accepted and never looked at; refused from 4.21 (pkg/apis/descheduler/v1/types_descheduler.go:15)."""
CRD = "kubedeschedulers.operator.openshift.io"


class Conflict(StrEnum):
    """What becomes of profiles that exclude each other, or of one that is given twice."""

    SKIPPED = "the operator skips the second one, and only its log tells"
    SCALED_TO_ZERO = "the operator scales the descheduler to zero and reports TargetConfigControllerDegraded"
    REFUSED = "the API server refuses the object"


class Tainter(StrEnum):
    """Whether the operator taints loaded nodes itself; from its first tainter on also wherever such a taint is left
    (release-4.18 pkg/operator/target_config_reconciler.go:1597), and then it removes it in mode Automatic."""

    NONE = "none"
    SWITCH = "by devEnableSoftTainter"
    PROFILE = "with profile KubeVirtRelieveAndMigrate"


OLD_POLICY = "the operator would keep its previous policy running, and only its log would tell"
"""Errors found while the policy is put together return before status or workload is touched
(main pkg/operator/target_config_reconciler.go:220)."""


@dataclass(frozen=True, slots=True)
class Schema:
    """One release branch.

    `limits` are the fields of `evictionLimits`; `node_limit_works` that the one for nodes also reaches the plugin,
    which otherwise evicts one pod from a node in each cycle.  `low_default`: the CRD writes a static threshold into
    every object that has `profileCustomizations`.  `pressure_check`: the operator looks for `/proc/pressure`.
    `rules`: the CRD itself refuses conflicts.  `has_mandatory`: pods that ask not to be evicted are left alone.
    `unsettled` are versions that exist with this schema and with the next.
    """

    name: str
    installed: str
    profiles: frozenset[str]
    customizations: frozenset[str]
    limits: frozenset[str] = frozenset()
    conflict: Conflict = Conflict.SKIPPED
    low_default: bool = False
    node_limit_works: bool = False
    pressure_check: bool = False
    has_mandatory: bool = False
    tainter: Tainter = Tainter.NONE
    unsettled: str = ""
    sources: tuple[str, ...] = field(default=(), compare=False)

    @property
    def series(self) -> str:
        """The minor release of the operator, of which one may have been built with several schemas."""
        return ".".join(self.installed.split(".")[:2])

    @property
    def title(self) -> str:
        """How messages name it: the version that people find in their cluster, and the schema it brings."""
        return f"descheduler operator {self.installed} (schema {self.name})"

    @property
    def takes_metrics(self) -> bool:
        """Whether load is measured by anything but what pods request."""
        return "devActualUtilizationProfile" in self.customizations

    @property
    def rules(self) -> bool:
        return self.conflict is Conflict.REFUSED


_BASE_PROFILES = frozenset(
    (
        "AffinityAndTaints",
        "TopologyAndDuplicates",
        "LifecycleAndUtilization",
        "DevPreviewLongLifecycle",
        "SoftTopologyAndDuplicates",
        "EvictPodsWithLocalStorage",
        "EvictPodsWithPVC",
    )
)
_BASE_FIELDS = frozenset(
    (
        "podLifetime",
        "thresholdPriority",
        "thresholdPriorityClassName",
        "namespaces",
        "devLowNodeUtilizationThresholds",
    )
)

_S12 = Schema(
    "4.12",
    "4.12.x",
    _BASE_PROFILES,
    _BASE_FIELDS,
    low_default=True,
    sources=("release-4.12 pkg/apis/descheduler/v1/types_descheduler.go:93",),
)
_S17 = replace(
    _S12,
    name="4.17",
    installed="5.1.0 to 5.1.4",
    profiles=_BASE_PROFILES | {"LongLifecycle", "CompactAndScale"},
    customizations=_BASE_FIELDS | {"devEnableEvictionsInBackground", "devHighNodeUtilizationThresholds"},
    limits=frozenset({"total"}),
    conflict=Conflict.SCALED_TO_ZERO,
    sources=(
        "release-4.17 pkg/apis/descheduler/v1/types_descheduler.go:81",
        "release-4.17 manifests/kube-descheduler-operator.crd.yaml:127",
    ),
)
_S18 = replace(
    _S17,
    name="4.18",
    installed="5.1.5 and newer 5.1",
    profiles=_S17.profiles | {"DevKubeVirtRelieveAndMigrate"},
    customizations=_S17.customizations
    | {"devEnableSoftTainter", "devActualUtilizationProfile", "devDeviationThresholds"},
    low_default=False,
    tainter=Tainter.SWITCH,
    sources=(
        "release-4.18 pkg/apis/descheduler/v1/types_descheduler.go:194",
        "release-4.18 pkg/operator/target_config_reconciler.go:1257",
    ),
)
# The field evictionLimits.node is in the Go type and not in the CRD (release-4.19
# manifests/kube-descheduler-operator.crd.yaml:48): server-side apply refuses it, everything else prunes it.
_S19 = replace(
    _S18,
    name="4.19",
    installed="5.2.x",
    pressure_check=True,
    tainter=Tainter.PROFILE,
    sources=("release-4.19 pkg/operator/target_config_reconciler.go:1372",),
)
_S20 = replace(
    _S19,
    name="4.20",
    installed="5.3.0 to 5.3.2",
    profiles=_S19.profiles | {"KubeVirtRelieveAndMigrate"},
    limits=frozenset({"total", "node"}),
    has_mandatory=True,
    unsettled="5.3.x",
    sources=(
        "release-4.20 pkg/apis/descheduler/v1/types_descheduler.go:199",
        "release-4.20 manifests/kube-descheduler-operator.crd.yaml:44",
    ),
)
_S21 = replace(
    _S20,
    name="4.21",
    installed="5.3.3 and newer 5.3",
    conflict=Conflict.REFUSED,
    unsettled="",
    sources=("release-4.21 pkg/apis/descheduler/v1/types_descheduler.go:15",),
)
_S22 = replace(
    _S21,
    name="4.22",
    installed="5.4.x",
    node_limit_works=True,
    unsettled="5.4.x",
    sources=("release-4.22 pkg/operator/target_config_reconciler.go:1121",),
)
_S23 = replace(
    _S22,
    name="4.23",
    installed="5.4.x with cooldown fields",
    unsettled="",
    customizations=_S22.customizations
    | {"devMigrationCooldown", "devMaxMigrationCooldown", "devMigrationHistoryWindow"},
    sources=("main pkg/apis/descheduler/v1/types_descheduler.go:134",),
)

TABLE: dict[str, Schema] = {
    entry.name: entry
    for entry in (
        _S12,
        replace(_S12, name="4.13", installed="4.13.x"),
        replace(_S12, name="4.14", installed="4.14.x"),
        replace(_S12, name="4.15", installed="5.0.x"),
        replace(_S12, name="4.16", installed="5.0.4"),
        _S17,
        _S18,
        _S19,
        _S20,
        _S21,
        _S22,
        _S23,
    )
}
SCHEMAS = tuple(TABLE)
"""Named after the operator's release branches."""

KNOWN = ("4.12.x", "4.13.x", "4.14.x", "5.0.x", "5.1.x", "5.2.x", "5.3.x", "5.4.x")

_SPELLINGS = {
    "KubeVirtRelieveAndMigrate": ("KubeVirtRelieveAndMigrate", "DevKubeVirtRelieveAndMigrate"),
    "LongLifecycle": ("LongLifecycle", "DevPreviewLongLifecycle"),
}


def spelled(profile: str, schemas: Iterable[Schema]) -> str | None:
    """The name that all of the schemas have for a profile, the newest first; None where there is none."""
    listed = list(schemas)
    for name in _SPELLINGS.get(profile, (profile,)):
        if all(name in one.profiles for one in listed):
            return name
    return None


def neutral(spelling: str) -> str | None:
    """The release-neutral name of a profile that is spelled as one release does; None where it is no other word."""
    return next((name for name, words in _SPELLINGS.items() if spelling in words and spelling != name), None)


_BALANCING = ("LifecycleAndUtilization", "LongLifecycle", "CompactAndScale", "KubeVirtRelieveAndMigrate")

EXCLUSIVE: tuple[frozenset[str], ...] = (
    *(frozenset((one, other)) for index, one in enumerate(_BALANCING) for other in _BALANCING[index + 1 :]),
    frozenset(("SoftTopologyAndDuplicates", "TopologyAndDuplicates")),
    frozenset(("CompactAndScale", "TopologyAndDuplicates")),
)
"""Profiles that exclude each other, in release-neutral names (main types_descheduler.go:37, CRD rules)."""

PROTECTED = ("kube-system", "hypershift", "openshift")
"""Namespaces that are never evicted from, and all `openshift-*` (main target_config_reconciler.go:125)."""


def protected(namespace: str) -> bool:
    """Whether a namespace is never evicted from on any cluster."""
    return namespace in PROTECTED or namespace.startswith("openshift-")


STATIC: dict[str, tuple[int, int]] = {"Low": (10, 30), "Medium": (20, 50), "High": (40, 70)}
DEVIATION: dict[str, tuple[int, int]] = {
    "Low": (10, 10),
    "Medium": (20, 20),
    "High": (30, 30),
    "AsymmetricLow": (0, 10),
    "AsymmetricMedium": (0, 20),
    "AsymmetricHigh": (0, 30),
}
"""Points below and above (main target_config_reconciler.go:1003)."""
COMPACT = ("Modest", 20)
"""CompactAndScale's default threshold on every schema, and its points (main target_config_reconciler.go:1385)."""


def since(number: int) -> str:
    """How help names the first operator with schema 4.`number`."""
    first = TABLE[f"4.{number}"]
    return f"operator {first.installed.split()[0]} (schema {first.name})"


def minor(name: str) -> int:
    """The number that orders schemas."""
    return int(name.partition(".")[2])


LATER_PATCH = {"5.1": 5, "5.3": 3}
"""Minor releases whose patches have different schemas, and the first patch that has the later one."""

_NEWEST = Version(5, 4)


def newer(version: Version) -> bool:
    """Whether a CSV version is newer than all that are known."""
    return (version.major, version.minor) > (_NEWEST.major, _NEWEST.minor)


def schema(version: Version, *, allow_newer: bool = False) -> str | None:
    """The schema that a CSV version brings, None where it is not known; the newest stands in for newer ones if allowed.

    README.md:28 and the ClusterServiceVersion of each release branch; where one number was built from two
    branches (5.3.1 and 5.3.3, 5.4.0) the narrower schema holds.
    """
    later = (version.patch or 0) >= LATER_PATCH.get(version.name, 0)
    match version.major, version.minor:
        case 4, 12 | 13 | 14:
            return version.name
        case 5, 0:
            return "4.15"
        case 5, 1:
            return "4.18" if later else "4.17"
        case 5, 2:
            return "4.19"
        case 5, 3:
            return "4.21" if later else "4.20"
        case 5, 4:
            return "4.22"
        case _:
            return schema(_NEWEST) if allow_newer and newer(version) else None
