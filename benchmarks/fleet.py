"""Fleets as real ones are: many clusters, a few releases, platforms and engines, policies of every kind.

The same size gives the same files, whatever the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import kinds

_HEAD = "# yaml-language-server: $schema=../../docs/schemas/{kind}.json\napiVersion: kubevirt-policy.dev/v1alpha1\n"
_FACTS_EVERY = 10  # of the clusters whose limits are sized from facts; each then has limits of its own
_ZONES = 16


@dataclass(frozen=True, slots=True)
class Profile:
    """A product and release, and who delivers to it."""

    platform: str
    versions: str
    delivery: str
    upgrading_to: str = ""
    reference_policy: bool = True

    @property
    def hyperconverged(self) -> bool:
        return "hyperconverged" in self.versions

    @property
    def api_version(self) -> str:
        if not self.hyperconverged:
            return "kubevirt.io/v1"
        return "hco.kubevirt.io/v1" if '"1.19"' in self.versions else "hco.kubevirt.io/v1beta1"


PROFILES = (
    Profile("openshift", 'hyperconverged: "4.18", kubernetes: "1.31"', "engine: argocd", reference_policy=False),
    Profile("openshift", 'hyperconverged: "1.15", kubernetes: "1.32"', "engine: argocd", 'hyperconverged: "1.16"'),
    Profile("openshift", 'hyperconverged: "1.17", kubernetes: "1.33"', "engine: argocd"),
    Profile(
        "kubernetes",
        'kubevirt: "1.5.2", kubernetes: "1.32"',
        'engine: flux, substitution: "on"',
        reference_policy=False,
    ),
    Profile("openshift", 'hyperconverged: "1.18", kubernetes: "1.34"', 'engine: flux, substitution: "off"'),
    Profile(
        "kubernetes",
        'hyperconverged: "1.16", kubevirt: "1.6.4", kubernetes: "1.33"',
        'engine: flux, substitution: "off"',
    ),
    Profile("openshift", 'hyperconverged: "4.14", kubernetes: "1.27"', "engine: argocd", reference_policy=False),
    Profile("kubernetes", 'kubevirt: "1.9", kubernetes: "1.35"', "engine: none"),
    Profile("openshift", 'hyperconverged: "1.19", kubernetes: "1.34"', "engine: argocd"),
)
_ENVIRONMENTS = ("prod", "prod", "edge", "lab", "stage")

POLICIES = """\
# yaml-language-server: $schema=../docs/schemas/RateLimitPolicy.json
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: production}
spec:
  clusters: {matchLabels: {env: prod}}
  static: {qps: 300, burst: 600}
---
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: big}
spec:
  clusters: {matchLabels: {env: prod, zone: z3}}
  priority: 10
  static:
    components:
      api: {qps: 200, burst: 400}
      controller: {qps: 300, burst: 600}
      handler: {qps: 20, burst: 40}
  acknowledge: [replaces-annotation]
---
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: measured}
spec:
  clusters: {matchLabels: {sizing: measured}}
  priority: 20
  adaptive:
    bootStorm: {within: 15m}
  acknowledge: [replaces-annotation]
---
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: edge}
spec:
  clusters:
    matchExpressions:
    - {key: env, operator: In, values: [edge]}
    - {key: managed, operator: DoesNotExist}
  profile: highBurst
---
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: laboratory}
spec:
  clusters: {matchLabels: {env: lab}}
  static:
    configMapRef: {path: platform/limits.yaml}
  acknowledge: [replaces-annotation]
---
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: stage}
spec:
  clusters: {matchLabels: {env: stage}}
  profile: platformDefaults
---
# yaml-language-server: $schema=../docs/schemas/ExpansionPolicy.json
apiVersion: kubevirt-policy.dev/v1alpha1
kind: ExpansionPolicy
metadata: {name: keep-references}
spec:
  clusters:
    matchLabels: {reference-policy: field}
    matchExpressions:
    - {key: env, operator: NotIn, values: [lab]}
  referencePolicy: reference
---
apiVersion: kubevirt-policy.dev/v1alpha1
kind: ExpansionPolicy
metadata: {name: write-out}
spec:
  clusters: {matchLabels: {reference-policy: field, env: lab}}
  referencePolicy: expand
  manifests: ["platform/vms/**/*.yaml"]
"""

LIMITS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: kubevirt-limits
data:
  controller.qps: "400"
  controller.burst: "800"
  handler.qps: "75"
  handler.burst: "150"
"""

MACHINE = """\
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata:
  name: build-agent
  namespace: laboratory
spec:
  runStrategy: Always
  template:
    spec:
      domain:
        devices: {}
"""


def write(root: Path, clusters: int, *, bases: bool = False, every_kind: bool = False) -> None:
    """A repository with that many clusters; with `bases`, each has a base of its own, half of them components.

    With `every_kind`, nearly all are rebalanced as well, and most have recording rules.
    """
    for folder in ("policies/clusters", "policies/facts", "platform/vms"):
        (root / folder).mkdir(parents=True)
    (root / ".kubevirt-policy.yaml").write_text("{}\n")
    (root / "policies/policies.yaml").write_text(POLICIES)
    (root / "platform/limits.yaml").write_text(LIMITS)
    (root / "platform/vms/build-agent.yaml").write_text(MACHINE)
    if every_kind:
        (root / "policies/load.yaml").write_text(kinds.POLICIES)
        (root / "platform/pressure.yaml").write_text(kinds.PRESSURE)
    for number in range(clusters):
        name, profile, component = f"site-{number:05}", PROFILES[number % len(PROFILES)], number % 2 == 0
        measured = number % _FACTS_EVERY == 0
        form = ("component" if component else "overlay") if bases else "partial"
        text = _cluster(name, number, profile, form, measured=measured, every_kind=every_kind)
        (root / f"policies/clusters/{name}.yaml").write_text(text)
        if measured:
            (root / f"policies/facts/{name}.yaml").write_text(_facts(name, number))
        if bases:
            _write_base(root, name, profile, component=component)


def write_contested(root: Path, clusters: int, policies: int) -> None:
    """The same fleet with many policies more, each of which selects by label and loses by priority."""
    write(root, clusters)
    documents = [
        "apiVersion: kubevirt-policy.dev/v1alpha1\nkind: RateLimitPolicy\n"
        f"metadata: {{name: more-{number:03}}}\nspec:\n  clusters: {{matchLabels: {{zone: z{number % _ZONES}}}}}\n"
        f"  priority: {number - policies - 1}\n  static: {{qps: {400 + number}, burst: 1200}}\n"
        for number in range(policies)
    ]
    (root / "policies/more.yaml").write_text("---\n".join(documents))


def write_warned(root: Path, clusters: int, *, files: int) -> None:
    """A fleet with one warning in each Cluster document, spread over so many files."""
    (root / "policies").mkdir(parents=True)
    (root / ".kubevirt-policy.yaml").write_text("{}\n")
    (root / "policies/policies.yaml").write_text(POLICIES.partition("---")[0])
    documents = [
        "apiVersion: kubevirt-policy.dev/v1alpha1\nkind: Cluster\n"
        f"metadata: {{name: site-{number:05}, labels: {{env: prod}}}}\n"
        'spec:\n  platform: openshift\n  versions: {hyperconverged: "1.99", allowNewer: true}\n'
        "  delivery: {engine: argocd}\n  operatorResource: {appliedBy: other}\n"
        for number in range(clusters)
    ]
    for file in range(files):
        (root / f"policies/clusters-{file:05}.yaml").write_text("---\n".join(documents[file::files]))


def _cluster(name: str, number: int, profile: Profile, form: str, *, measured: bool, every_kind: bool) -> str:
    labels = {
        "env": _ENVIRONMENTS[number // len(PROFILES) % len(_ENVIRONMENTS)],
        "zone": f"z{number % _ZONES}",
        "wave": f'"{number % 4}"',
    }
    if profile.reference_policy:
        labels["reference-policy"] = "field"
    if measured:
        labels["sizing"] = "measured"
    versions, monitoring = profile.versions, ""
    if every_kind:
        labels |= kinds.label(profile.versions)
        versions = ", ".join(filter(None, (versions, kinds.versions(versions))))
        monitoring = kinds.KUBERNETES if profile.platform == "kubernetes" else ""
    resource = "appliedBy: other" if form == "partial" else f"form: {form}, base: platform/{name}"
    upgrading_to = f"  upgradingTo: {{{profile.upgrading_to}}}\n" if profile.upgrading_to else ""
    return (
        f"{_HEAD.format(kind='Cluster')}kind: Cluster\nmetadata:\n  name: {name}\n"
        f"  labels: {{{', '.join(f'{key}: {value}' for key, value in labels.items())}}}\n"
        f"spec:\n  platform: {profile.platform}\n"
        f"  versions: {{{versions}}}\n{upgrading_to}"
        f"  delivery: {{{profile.delivery}}}\n  operatorResource: {{{resource}}}\n{monitoring}"
    )


def _facts(name: str, number: int) -> str:
    nodes = 3 + number % 97
    return (
        f"{_HEAD.format(kind='ClusterFacts')}kind: ClusterFacts\nmetadata: {{name: {name}}}\nspec:\n"
        f"  schedulableNodes: {nodes}\n  virtualMachines: {nodes * 40 + number % 11}\n"
        f"  apiServer: {{freeMillicores: {8000 + number % 9000}, mutatingP99Milliseconds: 210, rejectedRequests: 0}}\n"
        '  observedAt: "2026-01-20T06:00:00Z"\n'
    )


def _write_base(root: Path, name: str, profile: Profile, *, component: bool) -> None:
    kind = "HyperConverged" if profile.hyperconverged else "KubeVirt"
    object_name = "kubevirt-hyperconverged" if profile.hyperconverged else "kubevirt"
    namespace = "openshift-cnv" if profile.platform == "openshift" else object_name
    folder = root / "platform" / name
    folder.mkdir()
    listed = f"components:\n- ../../overlays/{name}/operator\n" if component else ""
    (folder / "kustomization.yaml").write_text(
        f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- operator.yaml\n{listed}"
    )
    (folder / "operator.yaml").write_text(
        f"apiVersion: {profile.api_version}\nkind: {kind}\nmetadata:\n  name: {object_name}\n  namespace: {namespace}\n"
        "  annotations:\n    team: platform\n"
        f"spec:\n  {'evictionStrategy: LiveMigrate' if profile.hyperconverged else 'workloads: {}'}\n"
    )
