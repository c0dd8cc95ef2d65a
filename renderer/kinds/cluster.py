"""`Cluster`: which releases a cluster runs, who delivers to it, and where its operator object lives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from renderer.kinds import address
from renderer.kinds.base import ApiVersion, Metadata, check_path
from renderer.kinds.fields import DnsLabel, DnsName, Duration, LabelKey, LabelValue, RepoPath, Strict
from renderer.model import Origin, Problem, Tree

VersionText: TypeAlias = Annotated[
    str, Meta(pattern=r"^(0|[1-9][0-9]{0,4})(\.(0|[1-9][0-9]{0,4})){1,2}(?!\n)$", title="version", examples=["1.14"])
]
Url: TypeAlias = Annotated[str, Meta(pattern=r"^https?://[^\s/?#]+(/[^\s?#]*)?(?!\n)$", max_length=2048)]
SOFT_TAINTER = "kubevirt-policy-softtaint"
"""Its namespace, which is rendered with it (`renderer.softtaint.config.NAME`, without the cost of its import)."""
ConfigKey: TypeAlias = Annotated[str, Meta(pattern=r"^[-._a-zA-Z0-9]+(?!\n)$", max_length=253)]


class ClusterMetadata(Metadata, frozen=True, kw_only=True):
    """The cluster's name is its overlay's folder."""

    name: Annotated[DnsLabel, Meta(description="The folder of the overlay.")]


class NextVersions(Strict, frozen=True, kw_only=True):
    """Product versions; every one that a policy depends on must be known to the release tables."""

    hyperconverged: Annotated[
        VersionText | None,
        Meta(
            description="HyperConverged 1.N[.P], or OpenShift Virtualization 4.N[.P]; left out where KubeVirt is "
            "installed without HyperConverged.",
            examples=["1.14", "4.18"],
        ),
    ] = None
    kubevirt: Annotated[
        VersionText | None,
        Meta(description="Required without hyperconverged; with it, taken from the table.", examples=["1.4", "1.6.4"]),
    ] = None
    descheduler_operator: Annotated[
        VersionText | None,
        Meta(description="The descheduler operator's CSV version, not the OpenShift minor.", examples=["5.1.5"]),
    ] = None
    descheduler: Annotated[VersionText | None, Meta(description="Upstream descheduler.", examples=["0.34"])] = None
    kubernetes: Annotated[
        VersionText | None,
        Meta(description="The API server's; required for softTaint with admission: policy.", examples=["1.31"]),
    ] = None
    prometheus: Annotated[
        VersionText | None, Meta(description="Rules are checked against its functions.", examples=["2.53"])
    ] = None


class Versions(NextVersions, frozen=True, kw_only=True):
    """The versions that the cluster runs."""

    allow_newer: Annotated[
        bool, Meta(description="Render a newer minor than the tables know as the newest known one.")
    ] = False


class Delivery(Strict, frozen=True, kw_only=True):
    """Who applies the overlays to the cluster."""

    engine: Annotated[Literal["argocd", "flux", "none"], Meta(description="none: no engine's annotations.")]
    substitution: Annotated[
        Literal["on", "off"] | None,
        Meta(description="Flux only, required there: whether its Kustomization substitutes ${…}."),
    ] = None


class OperatorResource(Strict, frozen=True, kw_only=True):
    """Where the HyperConverged or KubeVirt object lives, and who else applies it."""

    form: Annotated[
        Literal["partial", "component", "overlay", "none"] | None,
        Meta(
            description="component: a kustomize Component for `base`; overlay: a folder that takes `base` as its "
            "resource; partial: only our fields, for server-side apply; none: never rendered. "
            "Default component with a base, partial without."
        ),
    ] = None
    applied_by: Annotated[
        Literal["other", "same-engine"] | None,
        Meta(
            description="partial only, required there: who applies the rest of the object. Two applications of one "
            "engine share a field manager and take each other's fields away."
        ),
    ] = None
    api_version: Annotated[
        Literal["hco.kubevirt.io/v1beta1", "hco.kubevirt.io/v1", "kubevirt.io/v1"] | None,
        Meta(description="Default v1beta1 up to HyperConverged 1.18, v1 from 1.19."),
    ] = None
    name: Annotated[DnsName | None, Meta(description="Default kubevirt-hyperconverged, or kubevirt without it.")] = None
    namespace: Annotated[
        DnsLabel | None,
        Meta(
            description="Default openshift-cnv on openshift; on kubernetes kubevirt-hyperconverged, or kubevirt "
            "without it."
        ),
    ] = None
    base: Annotated[
        RepoPath | None, Meta(description="The kustomize directory that declares the object, from the repository root.")
    ] = None


class ConfigMapKey(Strict, frozen=True, kw_only=True):
    """One key of a ConfigMap."""

    name: Annotated[DnsName, Meta(description="Name of the ConfigMap.")]
    key: Annotated[ConfigKey, Meta(description="The key in its data.")]


class SecretName(Strict, frozen=True, kw_only=True):
    """A Secret."""

    namespace: Annotated[DnsLabel, Meta(description="Namespace of the Secret.")]
    name: Annotated[DnsName, Meta(description="Name of the Secret.")]


class Monitoring(Strict, frozen=True, kw_only=True):
    """The Prometheus that holds the cluster's node metrics."""

    url: Annotated[
        Url | None,
        Meta(description="Where the metrics are read; default the Thanos querier on openshift, none on kubernetes."),
    ] = None
    node_names: Annotated[
        Literal["name", "address"] | None,
        Meta(description="How node series name the node: name, or address:port. Default name on openshift."),
    ] = None
    scrape_interval: Annotated[
        Duration, Meta(description="How often the node metrics are scraped; windows of the catalogue follow it.")
    ] = "30s"
    rules: Annotated[
        Literal["object", "file"], Meta(description="object: PrometheusRule; file: a ConfigMap with a plain rule file.")
    ] = "object"
    rule_namespace: Annotated[
        DnsLabel | None,
        Meta(
            description="Where rules are put; default openshift-kube-descheduler-operator on openshift, monitoring on "
            "kubernetes."
        ),
    ] = None
    rule_labels: Annotated[
        dict[LabelKey, LabelValue],
        Meta(description="Labels by which the Prometheus finds its rules.", examples=[{"release": "prometheus"}]),
    ] = {}
    ca_config_map: Annotated[
        ConfigMapKey | None,
        Meta(
            description="The CA that the soft-tainter trusts with https; default that of the platform's services on "
            "openshift, the cluster's own on kubernetes."
        ),
    ] = None
    token_secret: Annotated[
        SecretName | None,
        Meta(description="A Secret with key prometheusAuthToken for Prometheus; default the pod's own token."),
    ] = None


class ClusterSpec(Strict, frozen=True, kw_only=True):
    """What a cluster is."""

    platform: Annotated[
        Literal["openshift", "kubernetes"],
        Meta(
            description="openshift: its own monitoring and descheduler operator; kubernetes: a Prometheus and the "
            "upstream descheduler."
        ),
    ]
    topology: Annotated[
        Literal["standard", "compact", "single-node", "hosted"],
        Meta(
            description="compact: control-plane nodes run virtual machines as well; single-node: one node does "
            "everything; hosted: the control plane runs elsewhere; standard: none of these."
        ),
    ] = "standard"
    versions: Annotated[Versions, Meta(description="Releases of the products that the cluster runs.")]
    upgrading_to: Annotated[
        NextVersions | None,
        Meta(description="Render only what both the present and these versions accept; refuse what either rejects."),
    ] = None
    delivery: Delivery
    operator_resource: OperatorResource = OperatorResource()
    monitoring: Monitoring = Monitoring()
    crds: Annotated[
        RepoPath | None, Meta(description="CustomResourceDefinitions exported from the cluster: a directory or file.")
    ] = None
    worker_pools: Annotated[
        Annotated[list[DnsLabel], Meta(min_length=1)] | None,
        Meta(description="MachineConfig pools; default worker, or master for compact and single-node."),
    ] = None


class Cluster(Strict, frozen=True, kw_only=True):
    """A cluster that overlays are rendered for."""

    api_version: ApiVersion
    kind: Literal["Cluster"]
    metadata: ClusterMetadata
    spec: ClusterSpec

    def check(self, origin: Origin, tree: Tree) -> Iterator[Problem]:
        """Fields that do not go together."""
        at = origin.below("spec")
        yield from check_path(self.spec.operator_resource.base, at.below("operatorResource", "base"))
        yield from check_path(self.spec.crds, at.below("crds"))
        yield from _check_delivery(self.spec.delivery, at.below("delivery"))
        yield from _check_operator(self.spec, at)
        yield from _check_namespaces(self.spec, at)
        if self.spec.monitoring.url is not None:
            yield from address.check(self.spec.monitoring.url, at.below("monitoring", "url"))


def _check_namespaces(spec: ClusterSpec, at: Origin) -> Iterator[Problem]:
    """The namespace of the soft-tainter comes and goes with it, and everything in it goes along."""
    token = spec.monitoring.token_secret
    given = {
        ("operatorResource", "namespace"): spec.operator_resource.namespace,
        ("monitoring", "ruleNamespace"): spec.monitoring.rule_namespace,
        ("monitoring", "tokenSecret", "namespace"): token.namespace if token else None,
    }
    for path, name in given.items():
        if name == SOFT_TAINTER:
            message = f"{name} is the soft-tainter's own namespace, which is removed with it, and all that is in it"
            help = "Name another namespace."
            if "tokenSecret" in path:
                help = "Keep the token in a namespace of its own, and a copy of it there for the soft-tainter."
            yield Problem("soft-taint/own-namespace", at.below(*path), message, help)


def _check_delivery(delivery: Delivery, at: Origin) -> Iterator[Problem]:
    if delivery.engine == "flux" and delivery.substitution is None:
        yield Problem(
            "policy/missing-key",
            at,
            "engine flux needs substitution: it decides whether ${…} must be escaped",
            'Add substitution: "on" if the Flux Kustomization has postBuild, else substitution: "off".',
        )
    if delivery.engine != "flux" and delivery.substitution is not None:
        yield Problem(
            "policy/value",
            at.below("substitution"),
            f"substitution does nothing with engine {delivery.engine}",
            "Remove it.",
        )


def _check_operator(spec: ClusterSpec, at: Origin) -> Iterator[Problem]:
    resource, place = spec.operator_resource, at.below("operatorResource")
    form = resource.form or ("component" if resource.base else "partial")
    if form in ("component", "overlay") and resource.base is None:
        yield Problem(
            "base/required",
            place.below("form"),
            f"form {form} needs the base that declares the object",
            "Add base: with the kustomize directory, from the repository root.",
        )
    if form == "partial" and resource.base is not None:
        yield Problem(
            "policy/value",
            place.below("base"),
            "form partial does not read a base",
            "Remove base, or use form: component.",
        )
    yield from _check_applied_by(form, resource, place)


def _check_applied_by(form: str, resource: OperatorResource, place: Origin) -> Iterator[Problem]:
    choice = (
        "Use form: component where this engine already applies the object: its directory lists our component, and the "
        "object keeps one application. Use form: overlay to point that application to our folder instead."
    )
    if form == "partial" and resource.applied_by is None:
        yield Problem(
            "base/applied-by",
            place,
            "form partial must state who applies the rest of the operator object: appliedBy is missing",
            f"Write appliedBy: other if it is nobody, a person, a script or another engine. {choice}",
        )
    if form == "partial" and resource.applied_by == "same-engine":
        yield Problem(
            "base/applied-by",
            place.below("appliedBy"),
            "two applications of one engine share one field manager: each apply takes the other's fields away, "
            "and both report success",
            choice,
        )
    if form != "partial" and resource.applied_by is not None:
        yield Problem(
            "policy/value", place.below("appliedBy"), f"appliedBy has no meaning with form {form}", "Remove it."
        )
