"""What is rendered for the soft-tainter, on a real API server: every object is accepted as it is, and stays so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from renderer.softtaint.config import NAME
from renderer.softtaint.taints import EFFECT, OVERUTILIZED, TAINTS, VALUE
from tests import repository
from tests.test_real_overlays import Object, apply, lost, remove, stored
from tests.testbed.access import Access, Refused, kubectl
from tests.testbed.fixtures import SERVERS
from tests.testbed.processes import until

pytestmark = SERVERS

IMAGE = f"registry.example/kubevirt-policy-softtaint@sha256:{64 * 'a'}"
KUBERNETES: dict[str, Any] = {
    "platform": "kubernetes",
    "versions": {"kubevirt": "1.9", "descheduler": "0.36", "kubernetes": "1.36"},
    "monitoring": {"url": "http://prometheus.monitoring.svc:9090"},
}
TOKEN = {"namespace": "prometheus-token", "name": "prometheus-token"}
FILE = {**KUBERNETES["monitoring"], "rules": "file", "tokenSecret": TOKEN}
OPENSHIFT: dict[str, Any] = {
    "platform": "openshift",
    "versions": {"hyperconverged": "1.13", "deschedulerOperator": "5.1.2", "kubernetes": "1.30"},
}
REQUESTS = {"profiles": ["LongLifecycle"]}
# Cluster, policy, softTaint.
RENDERED: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a job": (KUBERNETES, {}, {}),
    "a deployment": ({**KUBERNETES, "monitoring": FILE}, {}, {"runAs": "Deployment", "every": "90s"}),
    "a job on OpenShift": (OPENSHIFT, REQUESTS, {}),
    "a deployment on OpenShift": (OPENSHIFT, REQUESTS, {"runAs": "Deployment", "mode": "DryRun"}),
    "without its guard": (KUBERNETES, {}, {"admission": "none", "mode": "RemoveOnly"}),
}


def rendered(name: str) -> list[Object]:
    """The objects of the soft-tainter's folder, but for those of the Prometheus operator."""
    cluster, policy, taint = RENDERED[name]
    wanted = {"mode": "Automatic", **policy, "softTaint": {"mode": "Enforce", "image": IMAGE, **taint}}
    outcome = repository.render([repository.cluster(**cluster), repository.policy("RebalancePolicy", **wanted)])
    assert not repository.errors(outcome), outcome.findings
    paths = [path for path in outcome.files if "/soft-tainter/" in path and "kustomization" not in path]
    found = [yaml.safe_load(outcome.files[path]) for path in paths]
    return sorted(
        (body for body in found if body["kind"] != "PodMonitor"), key=lambda body: body["kind"] != "Namespace"
    )


@contextmanager
def applied(access: Access, objects: list[Object]) -> Iterator[list[Object]]:
    """The objects as they are stored.  The namespace stays: nothing here would ever end it."""
    apply(access, objects)
    try:
        yield stored(access, objects)
    finally:
        for body in objects:
            if body["kind"] != "Namespace":
                remove(access, body)


@pytest.mark.parametrize("name", RENDERED)
def test_applied_twice_the_second_time_changes_nothing(apiserver: Access, name: str) -> None:
    objects = rendered(name)
    with applied(apiserver, objects) as first:
        assert [lost(found, wanted) for found, wanted in zip(first, objects, strict=True)] == [[] for _ in objects]
        apply(apiserver, objects)
        versions = [body["metadata"]["resourceVersion"] for body in stored(apiserver, objects)]
        assert versions == [body["metadata"]["resourceVersion"] for body in first]


def template(objects: list[Object]) -> Object:
    [workload] = [body for body in objects if body["kind"] in ("CronJob", "Deployment")]
    spec = workload["spec"]
    found: Object = spec["jobTemplate"]["spec"]["template"] if workload["kind"] == "CronJob" else spec["template"]
    return found


def pod(objects: list[Object]) -> Object:
    body = template(objects)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**body["metadata"], "name": "it"}, "spec": body["spec"]}


@pytest.mark.parametrize("name", RENDERED)
def test_pod_passes_the_strictest_pod_security(apiserver: Access, name: str) -> None:
    objects = rendered(name)
    path = f"/api/v1/namespaces/{NAME}/pods"
    with applied(apiserver, objects):
        apiserver.create_at(f"{path}?dryRun=All", pod(objects))
        weak = pod(objects)
        weak["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        with pytest.raises(Refused, match="violates PodSecurity"):
            apiserver.create_at(f"{path}?dryRun=All", weak)


def tainter(access: Access) -> Access:
    """The job's own account, with a real token of it."""
    path = f"/api/v1/namespaces/{NAME}/serviceaccounts/{NAME}/token"
    token = access.create_at(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    kubeconfig = access.kubeconfig.with_name("tainter.kubeconfig")
    return Access.create(access.port, access.authority, token["status"]["token"], kubeconfig)


@contextmanager
def node(access: Access, name: str) -> Iterator[str]:
    path = f"/api/v1/nodes/{name}"
    access.create_at("/api/v1/nodes", {"metadata": {"name": name}})
    try:
        yield path
    finally:
        access.delete(path)


TAINT = {"key": OVERUTILIZED, "value": VALUE, "effect": EFFECT}


def patched(access: Access, path: str, *operations: Object) -> Object:
    found: Object = access.send("PATCH", path, list(operations), "application/json-patch+json")
    return found


APPENDED = {"op": "add", "path": "/spec/taints/-", "value": TAINT}  # a new node has the API server's own, not-ready


def works(user: Access, path: str) -> bool:
    """Whether a wrong taint is refused by the policy, which takes effect a moment after it was applied."""
    try:
        patched(user, f"{path}?dryRun=All", {**APPENDED, "value": {**TAINT, "value": "yes"}})
    except Refused as refused:
        return "every other taint stays" in str(refused)
    return False


def test_policy_lets_the_taints_pass_and_nothing_else(apiserver: Access) -> None:
    with applied(apiserver, rendered("a job")), node(apiserver, "guarded") as path:
        user = tainter(apiserver)
        until(lambda: works(user, path), "the admission policy works")
        before = apiserver.get(path)["spec"]["taints"]
        assert patched(user, path, APPENDED)["spec"]["taints"] == [*before, TAINT]
        with pytest.raises(Refused, match="every other taint stays"):
            patched(user, path, {"op": "remove", "path": "/spec/taints/0"})
        cordon = {"op": "add", "path": "/spec/unschedulable", "value": True}
        with pytest.raises(Refused, match="refused is a change of spec, field unschedulable"):
            patched(user, path, cordon)
        label = {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}
        with pytest.raises(Refused, match="refused is a change of metadata, field labels"):
            patched(user, path, label)
        assert patched(apiserver, path, label, cordon)["spec"]["unschedulable"] is True
        taints = patched(user, path, {"op": "remove", "path": f"/spec/taints/{len(before)}"})["spec"]["taints"]
        assert TAINT not in taints


def untaint(access: Access, *keys: str) -> None:
    removals = [f"{key}:{EFFECT}-" for key in keys]
    kubectl([f"--kubeconfig={access.kubeconfig}", "taint", "nodes", "--all", *removals])


def test_taints_are_removed_by_hand_whichever_a_node_has(apiserver: Access) -> None:
    """What the finding soft-taint/left-behind says: one command for each, or a node with one of the two keeps it."""
    with node(apiserver, "both") as both, node(apiserver, "one") as one, node(apiserver, "none"):
        for path, keys in ((both, TAINTS), (one, (OVERUTILIZED,))):
            added = [{**APPENDED, "value": {**TAINT, "key": key}} for key in keys]
            patched(apiserver, path, *added)
        untaint(apiserver, *TAINTS)
        assert TAINT in apiserver.get(one)["spec"]["taints"]
        for key in TAINTS:
            untaint(apiserver, key)
        left = [taint["key"] for path in (both, one) for taint in apiserver.get(path)["spec"]["taints"]]
        assert left == ["node.kubernetes.io/not-ready"] * 2
