"""What each HyperConverged release accepts, and the KubeVirt that it installs.

Sources are files of the hyperconverged-cluster-operator repository at the tag that first has the behaviour;
every tag's `hack/config` names its KubeVirt.
"""

from __future__ import annotations

from renderer.model import Path
from renderer.releases.versions import Version
from renderer.values import Value

GROUP = "hco.kubevirt.io"
_V1BETA1, _V1 = f"{GROUP}/v1beta1", f"{GROUP}/v1"
TUNING_ANNOTATION = "hco.kubevirt.io/tuningPolicy"
JSONPATCH_ANNOTATION = "kubevirt.kubevirt.io/jsonpatch"
NAME = "kubevirt-hyperconverged"
"""A singleton: the CRD's pattern and a constant of the operator (v1.18.1 api/v1/hyperconverged_types.go:17)."""


class HyperConvergedRelease(Value, frozen=True):
    """One minor release.

    `tuning_policy`: the field and its annotation exist; before, limits need the JSON patch annotation.
    `reference_policy`: `instancetypeConfig` exists.  `sets_gate`: it lists KubeVirt's gate by itself.
    The alert HCOMisconfiguredDescheduler fires without background evictions (`descheduler_background`) or one of
    `descheduler_profiles`, in release-neutral names; never where neither is given.
    `outbound_migrations`: default of `parallelOutboundMigrationsPerNode`, the same in each API version.
    """

    minor: str
    kubevirt: str
    served: tuple[str, ...] = (_V1BETA1,)
    default_api_version: str = _V1BETA1  # the stored one: v1.18.1 and release-1.19, CRD spec.versions[].storage
    tuning_policy: bool = True  # v1.9.0 api/v1beta1/hyperconverged_types.go:48
    reference_policy: bool = False  # v1.15.0 api/v1beta1/hyperconverged_types.go:258
    sets_gate: bool = (
        False  # v1.15.2 controllers/operands/kubevirt.go:113, v1.16.0 controllers/handlers/kubevirt.go:124
    )
    unsafe_metric: str = (
        "kubevirt_hco_unsafe_modifications"  # from v1.10; before: v1.9.0 controllers/alerts/alerts.go:147
    )
    descheduler_background: bool = False  # v1.14.0 pkg/util/cluster.go:382
    descheduler_profiles: tuple[str, ...] = ()
    outbound_migrations: int = 2  # 1 from 1.19, where nothing is stored yet (commit bffbfe54)
    source: str = ""


# v1.15.2 controllers/descheduler/descheduler_controller.go:110, v1.18.1 :106.
_MOVING = ("KubeVirtRelieveAndMigrate",)
_MOVING_OR_LONG = (*_MOVING, "LongLifecycle")
_OLD_METRIC = "kubevirt_hco_unsafe_modification_count"

RELEASES: dict[str, HyperConvergedRelease] = {
    entry.minor: entry
    for entry in (
        HyperConvergedRelease("1.8", "0.58", tuning_policy=False, unsafe_metric=_OLD_METRIC, source="v1.8.2"),
        HyperConvergedRelease("1.9", "0.59", unsafe_metric=_OLD_METRIC, source="v1.9.0"),
        HyperConvergedRelease("1.10", "1.0", source="v1.10.7"),
        HyperConvergedRelease("1.11", "1.1", source="v1.11.1"),
        HyperConvergedRelease("1.12", "1.2", source="v1.12.0"),
        HyperConvergedRelease("1.13", "1.3", descheduler_background=True, source="v1.13.0"),
        HyperConvergedRelease("1.14", "1.4", descheduler_background=True, source="v1.14.0"),
        HyperConvergedRelease(
            "1.15", "1.5", descheduler_profiles=_MOVING, reference_policy=True, sets_gate=True, source="v1.15.2"
        ),
        HyperConvergedRelease(
            "1.16", "1.6", descheduler_profiles=_MOVING, reference_policy=True, sets_gate=True, source="v1.16.0"
        ),
        HyperConvergedRelease(
            "1.17", "1.7", descheduler_profiles=_MOVING_OR_LONG, reference_policy=True, source="v1.17.3"
        ),
        HyperConvergedRelease(
            "1.18",
            "1.8",
            descheduler_profiles=_MOVING_OR_LONG,
            served=(_V1, _V1BETA1),
            reference_policy=True,
            source="v1.18.1",
        ),
        HyperConvergedRelease(
            "1.19",
            "1.9",
            served=(_V1, _V1BETA1),
            default_api_version=_V1,
            reference_policy=True,
            descheduler_profiles=_MOVING_OR_LONG,
            outbound_migrations=1,
            source="release-1.19",
        ),
    )
}

# v1beta1: api/v1beta1/hyperconverged_types.go:48 (v1.9.0) and :258 (v1.15.0);
# v1: api/v1/hyperconverged_types.go:225 and :409 (v1.18.1).
TUNING_POLICY: dict[str, Path] = {
    _V1BETA1: ("spec", "tuningPolicy"),
    _V1: ("spec", "virtualization", "tuningPolicy"),
}
REFERENCE_POLICY: dict[str, Path] = {
    _V1BETA1: ("spec", "instancetypeConfig", "referencePolicy"),
    _V1: ("spec", "workloadSources", "instancetypeConfig", "referencePolicy"),
}

LIVE_MIGRATION: dict[str, tuple[str, ...]] = {
    _V1BETA1: ("spec", "liveMigrationConfig"),
    _V1: ("spec", "virtualization", "liveMigrationConfig"),  # v1.18.1 api/v1/hyperconverged_types.go:231
}


def upstream(version: Version) -> Version:
    """OpenShift Virtualization's 4.N is HyperConverged 1.(N-4); the patch numbers are unrelated.

    The documentation pairs 4.12 and 4.13 with HCO 1.8 and 1.9 (openshift-docs common-attributes.adoc); later
    pairs follow the same step.
    """
    return Version(1, version.minor - 4) if version.major == 4 else version


def downstream(minor: str) -> str:
    """OpenShift Virtualization's number of a HyperConverged minor release."""
    return f"4.{int(minor.partition('.')[2]) + 4}"
