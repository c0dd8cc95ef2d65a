"""Whether something turns on the kernel's pressure metrics on the nodes of an OpenShift cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from renderer.kinds import manifests
from renderer.kinds.base import Site
from renderer.kinds.kube_descheduler import PRESSURE_ARGUMENT
from renderer.kinds.rebalance_spec import RebalanceSpec
from renderer.model import Body, Origin, Problem
from renderer.releases.descheduler_operator import Schema
from renderer.releases.operator_metrics import METRICS
from renderer.words import listed, plural

_ROLE = "machineconfiguration.openshift.io/role"
_NODE_ROLE = "node-role.kubernetes.io/"
_PARAMETER = PRESSURE_ARGUMENT.partition("=")[0]


def judge(
    spec: RebalanceSpec, known: Sequence[Schema], found: Sequence[tuple[Body, Origin]], site: Site, at: Origin
) -> Iterator[Problem]:
    """Profiles and named metrics that need them, with nothing here that turns them on."""
    reads = any(schema.takes_metrics for schema in known)
    if checked(spec, known):
        effect = (
            "the operator looks for /proc/pressure on the node it runs on and scales the descheduler to zero without it"
        )
    elif reads and isinstance(spec.metric, str) and METRICS[spec.metric].needs_pressure:
        effect = "the metric has no samples without them, and no node is balanced"
    else:
        return
    yield from missing(spec, found, site, at.below("profiles"), effect)


def checked(spec: RebalanceSpec, known: Sequence[Schema]) -> bool:
    """Whether the operator itself looks for them."""
    return spec.moves_machines and any(schema.pressure_check for schema in known)


def missing(
    spec: RebalanceSpec, found: Sequence[tuple[Body, Origin]], site: Site, at: Origin, effect: str
) -> Iterator[Problem]:
    """The pools of worker nodes without them, as far as policy and manifests tell."""
    dark = [pool for pool in site.worker_pools if not any(_enables(body, pool) for body, _ in found)]
    if dark and not spec.pressure_stall.enable:
        message = f"nothing here turns on pressure metrics for {_pools(dark)}: {effect}"
        help = (
            "Write pressureStall: {enable: true}, which reboots the nodes, or name the manifests that set psi=1 "
            "under manifests."
        )
        yield Problem("rebalance/no-pressure-metrics", at, message, help)


def _pools(names: list[str]) -> str:
    return f"{plural('pool', len(names))} {listed(names)}"


def _enables(body: Body, pool: str) -> bool:
    """Whether a manifest sets the kernel argument for a pool."""
    spec = manifests.below(body, "spec")
    if manifests.of_kind(body, "MachineConfig", "machineconfiguration.openshift.io/"):
        role = manifests.below(body, "metadata", "labels").get(_ROLE)
        return role == pool and _on(manifests.entries(spec.get("kernelArguments"), of=str))
    if manifests.of_kind(body, "PerformanceProfile", "performance.openshift.io/"):
        return _selects(spec, pool) and _on(manifests.entries(spec.get("additionalKernelArgs"), of=str))
    return False


def _selects(profile: Body, pool: str) -> bool:
    """Whether a PerformanceProfile is for a pool: its node selector names roles, or nothing that tells."""
    selected = [str(key) for key in manifests.below(profile, "nodeSelector")]
    roles = [key.removeprefix(_NODE_ROLE) for key in selected if key.startswith(_NODE_ROLE)]
    return not roles or pool in roles


def _on(arguments: Sequence[str]) -> bool:
    """Whether the last word on it is yes: the kernel goes by the last of its arguments (kstrtobool, as for `psi=`)."""
    given = [argument.partition("=") for entry in arguments for argument in entry.split()]
    values = [value.lower() for name, _, value in given if name == _PARAMETER]
    return bool(values) and values[-1].startswith(("1", "y", "t", "on"))
