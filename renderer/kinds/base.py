"""What every kind has in common: metadata, selection, the site that a policy is applied to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta

from renderer.kinds.fields import DnsName, LabelKey, LabelValue, Strict, leaves_repository
from renderer.model import Component, Limit, Manifest, Origin, Problem, Setting, Tree
from renderer.releases.hyperconverged import HyperConvergedRelease
from renderer.releases.kubevirt import Defaults, KubeVirtRelease
from renderer.releases.versions import Version
from renderer.sizing import Headroom
from renderer.values import Value
from renderer.words import shown

API_VERSION = "kubevirt-policy.dev/v1alpha1"
ApiVersion: TypeAlias = Annotated[
    Literal["kubevirt-policy.dev/v1alpha1"], Meta(description="The API that every kind belongs to.")
]

Request: TypeAlias = Setting | Manifest | Problem
"""What a policy yields for a site: a field it asks for, an object it brings, or something that is wrong."""


class Metadata(Strict, frozen=True, kw_only=True):
    """Name and labels of a document."""

    name: Annotated[DnsName, Meta(description="Unique among the documents of its kind.")]
    labels: Annotated[
        dict[LabelKey, LabelValue], Meta(description="Free to use; selectors match those of clusters.")
    ] = {}
    annotations: Annotated[dict[LabelKey, str], Meta(description="Notes for people; never rendered.")] = {}


class Requirement(Strict, frozen=True, kw_only=True):
    """One expression of a label selector, with Kubernetes' meaning."""

    key: Annotated[LabelKey, Meta(description="The label that is looked at.")]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist"],
        Meta(description="NotIn and DoesNotExist also hold where the label is absent."),
    ]
    values: Annotated[list[LabelValue], Meta(description="For In and NotIn, which need them; for no other.")] = []

    def matches(self, labels: dict[str, str]) -> bool:
        """`NotIn` and `DoesNotExist` also hold where the label is absent."""
        match self.operator:
            case "In":
                return self.key in labels and labels[self.key] in self.values
            case "NotIn":
                return self.key not in labels or labels[self.key] not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels


class ClusterSelector(Strict, frozen=True, kw_only=True):
    """Which clusters a policy is for: all of the given conditions hold; `{}` selects every cluster."""

    names: Annotated[Annotated[list[str], Meta(min_length=1)] | None, Meta(description="Clusters by name.")] = None
    match_labels: Annotated[dict[LabelKey, LabelValue], Meta(description="Labels that a cluster must have.")] = {}
    match_expressions: Annotated[list[Requirement], Meta(description="Label expressions.")] = []

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether the labels of a cluster are those that are asked for."""
        return self.match_labels.items() <= labels.items() and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )


def check_selector(selector: ClusterSelector, origin: Origin) -> Iterator[Problem]:
    """A selector that cannot be meant: nobody knows which clusters it is for."""
    for index, requirement in enumerate(selector.match_expressions):
        needs = requirement.operator in ("In", "NotIn")
        if needs != bool(requirement.values):
            message = f"operator {requirement.operator} {'needs values' if needs else 'takes no values'}"
            help = "Add values: with a list." if needs else "Remove values."
            yield Problem("policy/value", origin.below("matchExpressions", index), message, help)


class PolicySpec(Strict, frozen=True, kw_only=True):
    """What the spec of every policy kind begins with."""

    clusters: Annotated[ClusterSelector, Meta(description="Which clusters the policy is for; {} is every cluster.")]
    priority: Annotated[
        int,
        Meta(
            description="Of the policies of one kind that select a cluster, the highest wins whole.",
            ge=-(2**31),
            le=2**31 - 1,
        ),
    ] = 0


class OperatorRelease(Value, frozen=True):
    """The releases that serve a cluster's operator object at one time; without HyperConverged, KubeVirt alone."""

    hyperconverged: HyperConvergedRelease | None
    kubevirt: KubeVirtRelease
    kubevirt_patch: int | None

    @property
    def defaults(self) -> tuple[Defaults, ...]:
        return self.kubevirt.possible_defaults(self.kubevirt_patch)

    @property
    def kubevirt_name(self) -> str:
        return f"KubeVirt {self.kubevirt.minor}"

    @property
    def defaults_name(self) -> str:
        """KubeVirt's release as far as it decides the defaults: with the patch where they changed within the minor."""
        patched = len(self.kubevirt.defaults) > 1 and self.kubevirt_patch is not None
        return f"{self.kubevirt_name}.{self.kubevirt_patch}" if patched else self.kubevirt_name

    @property
    def name(self) -> str:
        """The product whose object is rendered, and its release."""
        return f"HyperConverged {self.hyperconverged.minor}" if self.hyperconverged else self.kubevirt_name


class OperatorObject(Value, frozen=True):
    """The HyperConverged or KubeVirt object of a cluster, and how we reach it."""

    form: Literal["partial", "component", "overlay", "none"]
    api_version: str
    kind: Literal["HyperConverged", "KubeVirt"]
    name: str
    namespace: str
    base: str | None


class Facts(Value, frozen=True):
    """The spec of the cluster's `ClusterFacts` as the policies need it, and where it stands."""

    origin: Origin
    nodes: int
    virtual_machines: int
    headroom: Headroom
    unhealthy: int
    previous: dict[Component, Limit]


class Descheduler(Value, frozen=True):
    """What rebalances a cluster: on openshift the schemas of the operator, on kubernetes upstream minors.

    Each holds the present one, and where `upgradingTo` is set the coming one; empty where no version is given.
    """

    schemas: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()


class MonitoringSite(Value, frozen=True):
    """The Prometheus of a cluster, with the platform's defaults; `scrape_interval` in seconds."""

    url: str | None
    node_names: Literal["name", "address"]
    scrape_interval: int
    rules: Literal["object", "file"]
    rule_namespace: str
    rule_labels: dict[str, str]
    ca_config_map: tuple[str, str] | None
    """Name and key."""
    token_secret: tuple[str, str] | None
    """Namespace and name; the pod's own token without it."""


class Site(Value, frozen=True):
    """One cluster as policies see it: versions looked up, defaults filled in, measured facts at hand."""

    origin: Origin
    platform: Literal["openshift", "kubernetes"]
    topology: Literal["standard", "compact", "single-node", "hosted"]
    engine: Literal["argocd", "flux", "none"]
    substitution: bool
    operator: OperatorObject
    releases: tuple[OperatorRelease, ...]
    """The present release, and where `upgradingTo` is set the coming one."""
    descheduler: Descheduler
    kubernetes: Version | None
    """The older of the present and the coming one: what it serves, both do."""
    prometheus: tuple[Version, ...]
    """The present and the coming one, as far as they are given, the older first."""
    monitoring: MonitoringSite
    worker_pools: tuple[str, ...]
    crds: str | None
    facts: Facts | None
    tree: Tree


def check_path(path: str | None, origin: Origin) -> Iterator[Problem]:
    """A path that leaves the repository is refused before anything reads it."""
    if path is not None and leaves_repository(path):
        message = f"{shown(path)} is not a path inside the repository"
        help = "Write it from the repository root, with forward slashes and without '..'."
        yield Problem("base/outside", origin, message, help)


def unneeded(word: str, reason: str, origin: Origin) -> Problem:
    """An acknowledgement of something that does not happen; it would hide it once it does."""
    help = "Remove it, so that it is asked for again when it is needed."
    return Problem("policy/unneeded", origin, f"acknowledge: {word} has no effect with {reason}", help)


class Policy(Strict, frozen=True, kw_only=True):
    """A document of a policy kind: what it means by itself and on a site."""

    metadata: Metadata
    spec: PolicySpec

    exclusive: ClassVar[bool] = True
    """Whether one policy wins per cluster, or all that select it apply."""

    guarded: ClassVar[bool] = True
    """Whether `apply` relies on what `check` refuses; else it runs all the same, and tells all problems at once."""

    reads_base: ClassVar[bool] = False
    """Whether `apply` looks at the path of the operator object's base; it is hidden from those that do not say so."""

    @property
    def needs_facts(self) -> bool:
        """Whether it can only be applied where the cluster was measured."""
        return False

    def check(self, origin: Origin, tree: Tree) -> Iterator[Problem]:
        """What is wrong whatever the cluster.  After an error here the policy is not applied."""
        yield from ()

    def apply(self, origin: Origin, site: Site) -> Iterator[Request]:
        """What the policy asks for on a cluster where it won."""
        raise NotImplementedError
