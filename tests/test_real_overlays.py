"""The example fleet on a real API server, each cluster with the CustomResourceDefinitions of its own release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from renderer.pipeline import Settings, run
from renderer.releases import descheduler_operator, hyperconverged
from renderer.releases.versions import Version, parse
from tests.repository import Files
from tests.testbed.access import Access, Refused, kustomize
from tests.testbed.definitions import definitions
from tests.testbed.fixtures import SERVERS

pytestmark = SERVERS

ROOT = Path(__file__).parents[1]
OURS, OTHER = "argocd-controller", "somebody"
CLUSTERS: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text())["spec"] for path in sorted(ROOT.glob("policies/clusters/*.yaml"))
}
FORMS = {
    name: spec["operatorResource"].get("form", "component" if "base" in spec["operatorResource"] else "partial")
    for name, spec in CLUSTERS.items()
}
STEPS = [
    pytest.param(name, step, id=name if step == "versions" else f"{name}-upgraded")
    for name, spec in CLUSTERS.items()
    for step in ("versions", "upgradingTo")
    if step in spec
]
# A field that no policy writes, by API version.
ELSEWHERE: dict[str, dict[str, Any]] = {
    "hco.kubevirt.io/v1beta1": {"uninstallStrategy": "RemoveWorkloads"},
    "hco.kubevirt.io/v1": {"deployment": {"uninstallStrategy": "RemoveWorkloads"}},
    "kubevirt.io/v1": {"uninstallStrategy": "BlockUninstallIfWorkloadsExist"},
}

Object = dict[str, Any]


def built(name: str, root: Path = ROOT) -> list[Object]:
    """Everything that is applied to a cluster.  Components reach it through the base that lists them."""
    folders = [root / "overlays" / name]
    if FORMS[name] == "component":
        folders.append(root / CLUSTERS[name]["operatorResource"]["base"])
    folders += root.glob(f"overlays/_node-tuning/{name}")
    return [body for folder in folders for body in yaml.safe_load_all(kustomize(folder)) if body]


def needed(objects: list[Object], versions: dict[str, str]) -> list[str]:
    """The definitions of those objects, of the releases that the cluster runs."""
    return sorted(filter(None, {definition(body["kind"], versions) for body in objects}))


def definition(kind: str, versions: dict[str, str]) -> str | None:
    match kind:
        case "HyperConverged":
            return f"hyperconverged-{hyperconverged.upstream(version(versions['hyperconverged'])).name}"
        case "KubeVirt":
            return f"kubevirt-{version(versions['kubevirt']).name}"
        case "KubeDescheduler":
            return f"kubedescheduler-{descheduler_operator.schema(version(versions['deschedulerOperator']))}"
        case "MachineConfig" | "PrometheusRule":
            return kind.lower()
        case _:
            return None


def version(text: str) -> Version:
    found = parse(text)
    assert found is not None
    return found


@contextmanager
def ready(access: Access, objects: list[Object], versions: dict[str, str]) -> Iterator[None]:
    """Definitions and namespaces are there; afterwards the objects are gone."""
    for namespace in {body["metadata"]["namespace"] for body in objects if "namespace" in body["metadata"]}:
        if not access.exists(f"/api/v1/namespaces/{namespace}"):
            access.create_at("/api/v1/namespaces", {"metadata": {"name": namespace}})
    with definitions(access, needed(objects, versions)):
        try:
            yield
        finally:
            for body in objects:
                if body["kind"] != "Namespace":  # nothing here would ever end one
                    remove(access, body)


def remove(access: Access, body: Object) -> None:
    try:
        access.delete(access.path(body))
    except Refused as refused:
        if not refused.missing:
            raise


def apply(access: Access, objects: list[Object], manager: str = OURS) -> None:
    applied = access.apply(yaml.safe_dump_all(objects), manager, force=True)
    assert applied.ok, applied.output


def stored(access: Access, objects: list[Object]) -> list[Object]:
    return [access.get(access.path(body)) for body in objects]


def content(body: Object) -> Object:
    """An object without what the API server counts and notes."""
    noted = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key not in noted}}


def lost(found: Any, wanted: Any, path: str = "") -> list[str]:
    """The fields of `wanted` that are missing in `found` or differ there; what else is in `found` are defaults."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [at for key, value in wanted.items() for at in lost(found.get(key), value, f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(found, wanted, strict=True))
        return [at for index, (here, value) in pairs for at in lost(here, value, f"{path}[{index}]")]
    return [] if found == wanted else [path]


def merged(base: Any, more: Any) -> Any:
    """Server-side apply, where no two writers have a list in common."""
    if not isinstance(base, dict) or not isinstance(more, dict):
        return more
    return {**base, **{key: merged(base.get(key), value) for key, value in more.items()}}


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_applied_twice_the_second_time_changes_nothing(apiserver: Access, name: str, step: str) -> None:
    objects = built(name)
    if FORMS[name] == "none":
        assert not [body for body in objects if body["kind"] in ("HyperConverged", "KubeVirt")]
    else:
        assert objects
    if not objects:
        return
    with ready(apiserver, objects, CLUSTERS[name]["versions"] | CLUSTERS[name][step]):
        apply(apiserver, objects)
        first = stored(apiserver, objects)
        # Nothing was pruned, and nothing reads otherwise than it was rendered.
        assert [lost(found, wanted) for found, wanted in zip(first, objects, strict=True)] == [[] for _ in objects]
        apply(apiserver, objects)
        versions = [body["metadata"]["resourceVersion"] for body in stored(apiserver, objects)]
        assert versions == [body["metadata"]["resourceVersion"] for body in first]


def without_policies(folder: Path) -> Path:
    """The fleet rendered anew, after every policy was removed."""
    files = {
        str(path.relative_to(ROOT)): path.read_text()
        for part in ("policies/clusters", "policies/facts", "platform")
        for path in (ROOT / part).rglob("*.yaml")
    }
    outcome = run(Files(files), Settings())
    assert not outcome.failed, outcome.findings
    for path, text in outcome.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if form == "partial"])
def test_a_removed_policy_takes_back_its_own_fields_only(apiserver: Access, name: str, tmp_path: Path) -> None:
    [rendered] = [body for body in built(name) if body["kind"] in ("HyperConverged", "KubeVirt")]
    [bare] = [
        body for body in built(name, without_policies(tmp_path)) if body["kind"] in ("HyperConverged", "KubeVirt")
    ]
    identity = {"name": rendered["metadata"]["name"], "namespace": rendered["metadata"]["namespace"]}
    other = {
        "apiVersion": rendered["apiVersion"],
        "kind": rendered["kind"],
        "metadata": {**identity, "annotations": {"example.com/note": "kept"}},
        "spec": ELSEWHERE[rendered["apiVersion"]],
    }
    with ready(apiserver, [rendered], CLUSTERS[name]["versions"]):
        apply(apiserver, [other], OTHER)
        [before] = map(content, stored(apiserver, [other]))
        apply(apiserver, [rendered])
        [during] = map(content, stored(apiserver, [other]))
        assert lost(during, merged(before, rendered)) == []  # defaults may stand beside our fields
        apply(apiserver, [bare])
        [after] = map(content, stored(apiserver, [other]))
        assert after == merged(before, bare)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        ({"spec": {"tuningPolicie": "annotation"}}, "field not declared in schema"),
        ({"spec": {"tuningPolicy": "highest"}}, 'Unsupported value: "highest"'),
        ({"spec": {"defaultCPUModel": 7}}, "expected string"),
    ],
)
def test_a_wrong_field_is_refused(apiserver: Access, change: Object, answer: str) -> None:
    [rendered] = [body for body in built("prod-lab") if body["kind"] == "HyperConverged"]
    with ready(apiserver, [rendered], CLUSTERS["prod-lab"]["versions"]):
        applied = apiserver.apply(yaml.safe_dump(merged(rendered, change)), OURS)
        assert not applied.ok
        assert answer in applied.output
        assert not apiserver.exists(apiserver.path(rendered))


def test_a_field_of_another_release_is_refused(apiserver: Access) -> None:
    """Each release has its own definitions here, not the newest ones."""
    [rendered] = [body for body in built("prod-lab") if body["kind"] == "HyperConverged"]
    with ready(apiserver, [rendered], {"hyperconverged": "1.8"}):
        applied = apiserver.apply(yaml.safe_dump(rendered), OURS)
        assert not applied.ok
        assert ".spec.tuningPolicy: field not declared in schema" in applied.output
