"""All policy kinds on all releases: what is rendered is what that very release's CRD accepts, or it is refused.

What must be refused stands in a table of its own, written from product facts; the release tables are then held
against the CRDs themselves.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from renderer import pipeline
from renderer.crds import Schema
from renderer.kinds import POLICIES
from renderer.model import Component, Severity
from renderer.pipeline import Settings
from renderer.releases import hyperconverged, kubevirt
from renderer.releases.versions import Version
from renderer.tree import DiskTree
from tests import real

HCO_TO_KUBEVIRT = {
    "1.8": "0.58", "1.9": "0.59", "1.10": "1.0", "1.11": "1.1", "1.12": "1.2", "1.13": "1.3",
    "1.14": "1.4", "1.15": "1.5", "1.16": "1.6", "1.17": "1.7", "1.18": "1.8", "1.19": "1.9",
}  # fmt: skip
V1BETA1, V1 = "hco.kubevirt.io/v1beta1", "hco.kubevirt.io/v1"
FORMS = ("partial", "component", "overlay")
GATE = "InstancetypeReferencePolicy"
ALL = ("api", "controller", "handler", "webhook")


@dataclass(frozen=True)
class Release:
    """One release as a cluster has it: HyperConverged with an API version, or KubeVirt alone."""

    product: str
    minor: str
    api_version: str

    def __str__(self) -> str:
        return f"{self.product}-{self.minor}-{self.api_version.rpartition('/')[2]}"

    @property
    def kubevirt(self) -> str:
        return HCO_TO_KUBEVIRT[self.minor] if self.product == "hyperconverged" else self.minor


RELEASES = [
    *(Release("hyperconverged", minor, V1BETA1) for minor in HCO_TO_KUBEVIRT),
    *(Release("hyperconverged", minor, V1) for minor in ("1.18", "1.19")),
    *(Release("kubevirt", minor, "kubevirt.io/v1") for minor in HCO_TO_KUBEVIRT.values()),
]


@dataclass(frozen=True)
class Case:
    """A policy, and what it comes down to in the KubeVirt object."""

    name: str
    kind: str
    spec: Mapping[str, Any]
    limits: Mapping[str, tuple[int, int]] | None = field(default_factory=dict)  # None: whatever sizing says
    replicas: int | None = None
    reference: str | None = None


def limit(qps: int, burst: int) -> dict[str, int]:
    return {"qps": qps, "burst": burst}


def rate(name: str, spec: Mapping[str, Any], limits: Mapping[str, tuple[int, int]] | None, **more: Any) -> Case:
    return Case(name, "RateLimitPolicy", {**spec, "acknowledge": ["replaces-annotation"]}, limits, **more)


def expansion(policy: str, via: str) -> Case:
    spec = {"referencePolicy": policy, "via": via, "acknowledge": ["one-way", "replaces-annotation"]}
    return Case(f"{policy} via {via}", "ExpansionPolicy", spec, reference=policy)


CASES = [
    rate("pair", {"static": limit(300, 600)}, dict.fromkeys(ALL, (300, 600))),
    rate(
        "per component",
        {"static": {"components": {"api": limit(210, 420), "handler": limit(60, 120)}}},
        {"api": (210, 420), "handler": (60, 120)},
    ),
    rate("ConfigMap, pair", {"static": {"configMapRef": {"path": "pair.yaml"}}}, dict.fromkeys(ALL, (500, 900))),
    rate("ConfigMap, component", {"static": {"configMapRef": {"path": "one.yaml"}}}, {"webhook": (500, 900)}),
    rate("highBurst", {"profile": "highBurst"}, dict.fromkeys(ALL, (200, 400))),
    rate("platformDefaults", {"profile": "platformDefaults"}, {}),
    rate("adaptive", {"adaptive": {"bootStorm": {"within": "5m"}}}, None),
    rate("replicas auto", {"profile": "platformDefaults", "virtApi": {"replicas": "auto"}}, {}),
    rate("replicas", {"profile": "platformDefaults", "virtApi": {"replicas": 5}}, {}, replicas=5),
    rate(
        "pair and replicas",
        {"static": limit(300, 600), "virtApi": {"replicas": 7}},
        dict.fromkeys(ALL, (300, 600)),
        replicas=7,
    ),
    *(expansion(policy, via) for policy in ("reference", "expand", "expandAll") for via in ("field", "jsonpatch")),
]

BEFORE_1_1 = {"hyperconverged": ("1.8", "1.9", "1.10"), "kubevirt": ("0.58", "0.59", "1.0")}
BEFORE_1_4 = {
    "hyperconverged": ("1.8", "1.9", "1.10", "1.11", "1.12", "1.13"),
    "kubevirt": ("0.58", "0.59", "1.0", "1.1", "1.2", "1.3"),
}
WITH_A_GATE = ("1.4", "1.5")
SETS_THE_GATE = ("1.15", "1.16")  # by itself, whether a policy asks or not (1d)


def refusal(case: Case, release: Release, form: str) -> str | None:
    """The code that must be found, by the facts: what came with which release, and what a partial object cannot say."""
    alone, early = release.product == "kubevirt", release.minor in BEFORE_1_4[release.product]
    if case.replicas and release.minor in BEFORE_1_1[release.product]:
        return "release/unsupported"  # virt-operator overwrites the number (facts 2c)
    if case.kind == "ExpansionPolicy":
        if early:
            return "expansion/unsupported"  # no such field in KubeVirt (2b)
        if case.name.endswith("jsonpatch"):
            return "expansion/unsupported" if alone else None  # the annotation is HyperConverged's
        if (release.product, release.minor) == ("hyperconverged", "1.14"):
            return "expansion/needs-jsonpatch"  # instancetypeConfig came with 1.15 (1d)
    if alone and form == "partial":
        if case.replicas:
            return "base/required"  # customizeComponents.patches is replaced whole (0b.3)
        if case.reference and release.minor in WITH_A_GATE:
            return "base/required"  # and so is featureGates
    return None


TABLE = [(case, release, form) for case in CASES for release in RELEASES for form in FORMS]


@pytest.mark.parametrize(
    ("case", "release", "form"), TABLE, ids=[f"{case.name}, {release}, {form}" for case, release, form in TABLE]
)
def test_accepted_or_refused(case: Case, release: Release, form: str, tmp_path: Path) -> None:
    real.definition(release.product, release.minor)  # first of all: without it the test would say nothing
    write(tmp_path, case, release, form)
    outcome = pipeline.run(DiskTree(tmp_path), Settings())
    errors = {finding.code for finding in outcome.findings if finding.severity is Severity.ERROR}
    wanted = refusal(case, release, form)
    assert errors == ({wanted} if wanted else set()), [one.message for one in outcome.findings]
    if wanted is None:
        body = final(tmp_path, outcome.files, form)
        assert body["apiVersion"] == release.api_version
        assert faults(release.product, release.minor, body) == []
        check_effect(case, release, body)


def check_effect(case: Case, release: Release, body: Mapping[str, Any]) -> None:
    """What becomes of it in KubeVirt, and that KubeVirt's CRD accepts that."""
    if release.product == "kubevirt":
        effect = body
    else:
        effect = as_hyperconverged_writes(release, body)
        assert faults("kubevirt", release.kubevirt, effect) == []
    configuration = effect["spec"].get("configuration", {})
    found = {component: configuration.get(f"{component}Configuration") for component in ALL}
    limits = {name: one["restClient"]["rateLimiter"][BUCKET] for name, one in found.items() if one}
    if case.limits is not None:
        assert limits == {name: limit(*pair) for name, pair in case.limits.items()}
    assert configuration.get("instancetype", {}).get("referencePolicy") == case.reference
    gates = configuration.get("developerConfiguration", {}).get("featureGates", [])
    sets_it = release.product == "hyperconverged" and release.minor in SETS_THE_GATE
    assert gates.count(GATE) == int(sets_it or (case.reference is not None and release.kubevirt in WITH_A_GATE))
    patches = effect["spec"].get("customizeComponents", {}).get("patches", [])
    assert [json.loads(patch["patch"]) for patch in patches] == (
        [[{"op": "replace", "path": "/spec/replicas", "value": case.replicas}]] if case.replicas else []
    )


BUCKET = "tokenBucketRateLimiter"


def as_hyperconverged_writes(release: Release, body: Mapping[str, Any]) -> dict[str, Any]:
    """The KubeVirt object that HyperConverged makes of its own (facts 1a to 1d), as far as we have a hand in it."""
    spec, annotations = body.get("spec", {}), body["metadata"].get("annotations", {})
    v1 = release.api_version == V1
    gates = ["HotplugVolumes", *([GATE] if release.minor in SETS_THE_GATE else [])]
    configuration: dict[str, Any] = {"developerConfiguration": {"featureGates": gates}, "migrations": {}}
    policy = (spec.get("virtualization", {}) if v1 else spec).get("tuningPolicy")
    tuning = annotations.get("hco.kubevirt.io/tuningPolicy")
    assert (policy, tuning is None) in [(None, True), ("annotation", False)]  # both or neither (trap T7)
    if tuning is not None:
        pair = json.loads(tuning)
        assert sorted(pair) == ["burst", "qps"]
        for component in ALL:
            configuration[f"{component}Configuration"] = {"restClient": {"rateLimiter": {BUCKET: pair}}}
    types = (spec.get("workloadSources", {}) if v1 else spec).get("instancetypeConfig")
    if types is not None:
        configuration["instancetype"] = types
    operations = json.loads(annotations.get("kubevirt.kubevirt.io/jsonpatch", "[]"))
    assert all(one["op"] == "add" and one["path"].startswith("/spec/") for one in operations)
    assert policy is None or not any(BUCKET in json.dumps(one) for one in operations)  # they do not combine (T4)
    metadata = {"name": "kubevirt-kubevirt-hyperconverged", "namespace": "openshift-cnv"}
    written = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": metadata}
    patched: dict[str, Any] = jsonpatch.apply_patch({**written, "spec": {"configuration": configuration}}, operations)
    return patched


def faults(product: str, release: str, body: Mapping[str, Any]) -> list[str]:
    return [fault.message for fault in real.definition(product, release).faults(dict(body))]


def write(root: Path, case: Case, release: Release, form: str) -> None:
    """A repository with one cluster and one policy."""
    operator = {"form": form, "apiVersion": release.api_version}
    operator |= {"appliedBy": "other"} if form == "partial" else {"base": "base"}
    cluster = {
        "platform": "openshift",
        "versions": {release.product: release.minor},
        "delivery": {"engine": "argocd"},
        "operatorResource": operator,
    }
    facts = {"schedulableNodes": 100, "virtualMachines": 20_000, "apiServer": {"freeQPS": 50_000}}
    policies = [
        document("Cluster", "one", cluster),
        document("ClusterFacts", "one", facts),
        document(case.kind, "policy", {"clusters": {}, **case.spec}),
    ]
    save(root / "policies/all.yaml", *policies)
    shared = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits"}}
    save(root / "pair.yaml", {**shared, "data": {"qps": "500", "burst": "900"}})
    save(root / "one.yaml", {**shared, "data": {"webhook.qps": "500", "webhook.burst": "900"}})
    if form != "partial":
        listed = {"resources": ["object.yaml"], "components": ["../overlays/one/operator"]}
        save(root / "base/kustomization.yaml", {key: listed[key] for key in list(listed)[: 1 + (form == "component")]})
        save(root / "base/object.yaml", base(release))


def base(release: Release) -> dict[str, Any]:
    if release.product == "kubevirt":
        spec = {"configuration": {"developerConfiguration": {"featureGates": ["Snapshot"]}}}
        return {**named(release.api_version, "KubeVirt", "kubevirt"), "spec": spec}
    return {**named(release.api_version, "HyperConverged", "kubevirt-hyperconverged"), "spec": {}}


def named(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "openshift-cnv"}}


def document(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kubevirt-policy.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def save(path: Path, *documents: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(documents))


def final(root: Path, files: Mapping[str, str], form: str) -> dict[str, Any]:
    """The operator object: rendered whole, or the base with the rendered patch applied by an independent library."""
    (name,) = [path for path in files if "/operator/" in path and not path.endswith("kustomization.yaml")]
    rendered = yaml.safe_load(files[name])
    if form == "partial":
        return dict(rendered)
    patched: dict[str, Any] = jsonpatch.apply_patch(yaml.safe_load((root / "base/object.yaml").read_text()), rendered)
    return patched


# The tables of cases, and the release tables.


def test_every_kind_has_cases() -> None:
    """What writes to the operator object is tried here; kinds that bring objects of their own, elsewhere."""
    own_objects = {"RebalancePolicy": "test_releases_rebalance.py", "RecordingRules": "rules/test_catalog.py"}
    assert {case.kind for case in CASES} | set(own_objects) == set(POLICIES)
    assert all((real.ROOT / "tests" / file).is_file() for file in own_objects.values())


def test_every_release_is_tried() -> None:
    tried = [(one.minor, one.api_version) for one in RELEASES if one.product == "hyperconverged"]
    served = [(minor, version) for minor, one in hyperconverged.RELEASES.items() for version in one.served]
    assert sorted(tried) == sorted(served)
    assert [one.minor for one in RELEASES if one.product == "kubevirt"] == list(kubevirt.RELEASES)
    assert {minor: one.kubevirt for minor, one in hyperconverged.RELEASES.items()} == HCO_TO_KUBEVIRT


def test_every_definition_has_its_release() -> None:
    real.definition("kubevirt", "1.9")
    tables = {"hyperconverged": list(hyperconverged.RELEASES), "kubevirt": list(kubevirt.RELEASES)}
    for product, releases in tables.items():
        found = {path.stem.removeprefix(f"{product}-") for path in real.CRDS.glob(f"{product}-*.yaml")}
        assert found == set(releases)


def schemas(product: str, release: str) -> dict[str, Schema]:
    versions = real.definition(product, release).versions
    group = "hco.kubevirt.io" if product == "hyperconverged" else "kubevirt.io"
    return {f"{group}/{name}": version.schema for name, version in versions.items()}


def at(schema: Schema, path: Sequence[str | int]) -> Schema | None:
    found: Any = schema
    for step in path:
        found = found.get("items") if step == "-" else found.get("properties", {}).get(step)
        if found is None:
            return None
    return dict(found)


@pytest.mark.parametrize("minor", hyperconverged.RELEASES)
def test_hyperconverged_table(minor: str) -> None:
    release, found = hyperconverged.RELEASES[minor], schemas("hyperconverged", minor)
    assert set(found) == set(release.served)
    for api_version, schema in found.items():
        policy = at(schema, hyperconverged.TUNING_POLICY[api_version])
        assert ("annotation" in (policy or {}).get("enum", ())) == release.tuning_policy
        reference = at(schema, hyperconverged.REFERENCE_POLICY[api_version])
        assert (reference is not None) == release.reference_policy
        if reference is not None:
            assert set(reference["enum"]) == {"reference", "expand", "expandAll"}


@pytest.mark.parametrize("minor", hyperconverged.RELEASES)
def test_default_api_version_is_the_stored_one(minor: str) -> None:
    real.definition("hyperconverged", minor)
    spec = yaml.load((real.CRDS / f"hyperconverged-{minor}.yaml").read_bytes(), yaml.CSafeLoader)["spec"]
    (stored,) = [version["name"] for version in spec["versions"] if version["storage"]]
    assert hyperconverged.RELEASES[minor].default_api_version == f"hco.kubevirt.io/{stored}"


@pytest.mark.parametrize("minor", kubevirt.RELEASES)
def test_kubevirt_table(minor: str) -> None:
    release, schema = kubevirt.RELEASES[minor], schemas("kubevirt", minor)[kubevirt.API_VERSION]
    for component in Component:
        bucket = at(schema, kubevirt.limiter(component).path)
        assert bucket is not None
        assert sorted(bucket["required"]) == ["burst", "qps"]
    reference = at(schema, kubevirt.REFERENCE_POLICY.path)
    assert (reference is not None) == release.reference_policy
    patch, gates = at(schema, kubevirt.COMPONENT_PATCHES.path), at(schema, kubevirt.GATES.path)
    assert patch is not None
    assert sorted(patch["required"]) == sorted(kubevirt.replicas_patch(3)) == sorted(patch["properties"])
    assert gates == {"type": "string"}


def unknown_fields() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What a real API server refused (facts 0b.1)."""
    hco = named(V1BETA1, "HyperConverged", "kubevirt-hyperconverged")
    yield "hyperconverged", "1.8", {**hco, "spec": {"tuningPolicy": "annotation"}}
    yield "hyperconverged", "1.15", {**hco, "spec": {"commonInstancetypesDeployment": {"enabled": True}}}
    spec = {"configuration": {"instancetype": {"referencePolicy": "expand"}}}
    yield "kubevirt", "0.58", {**named("kubevirt.io/v1", "KubeVirt", "kubevirt"), "spec": spec}


@pytest.mark.parametrize(("product", "release", "body"), list(unknown_fields()))
def test_validation_refuses_what_an_api_server_refused(product: str, release: str, body: dict[str, Any]) -> None:
    (fault,) = real.definition(product, release).faults(body)
    assert "is not a field of this version" in fault.message


def test_validation_refuses_a_bare_kubevirt() -> None:
    (fault,) = real.definition("kubevirt", "1.9").faults(named("kubevirt.io/v1", "KubeVirt", "kubevirt"))
    assert "spec" in fault.message


def test_validation_accepts_a_bare_hyperconverged() -> None:
    for release in hyperconverged.RELEASES.values():
        for api_version in release.served:
            body = named(api_version, "HyperConverged", "kubevirt-hyperconverged")
            assert faults("hyperconverged", release.minor, body) == []


def test_versions_have_no_order() -> None:
    """Which of 1.6 and 1.6.4 is older nobody knows; their minor releases can be compared."""
    with pytest.raises(TypeError):
        assert Version(1, 6) < Version(1, 7)  # type: ignore[operator]
    assert Version(1, 6).release == Version(1, 6, 4).release < Version(1, 10).release
