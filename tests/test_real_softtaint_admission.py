"""What the rendered account may do on a real API server, by RBAC and by the rendered admission policy: no more."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from renderer.softtaint.config import NAME
from renderer.softtaint.taints import APPROPRIATE, OVERUTILIZED
from tests import softtaint
from tests.softtaint import ACCOUNT, LEASE, POLICIES, Tainter, of_kind, refusal
from tests.testbed.access import Access, kubectl
from tests.testbed.fixtures import SERVERS
from tests.testbed.nodes import JSON_PATCH, MERGE_PATCH, NODES, Object, Wire, add, small
from tests.testbed.processes import until
from tests.testbed.writers import STRATEGIC_PATCH

pytestmark = SERVERS

VICTIM = "victim"
NODE = f"{NODES}/{VICTIM}"
BY_US = f"{NODE}?fieldManager={NAME}"
BINDINGS = f"{POLICIES.removesuffix('policies')}policybindings"
ROLES = "/apis/rbac.authorization.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces"
APPLY_PATCH = "application/apply-patch+yaml"
JSON = "application/json"


def ours(key: str, **other: str) -> Object:
    return {"key": key, "value": "true", "effect": "PreferNoSchedule", **other}


FIRST = {"key": "example.com/first", "value": "1", "effect": "NoSchedule"}
SECOND = {"key": "example.com/second", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
HALF, OVER = ours(APPROPRIATE), ours(OVERUTILIZED)
BEFORE = [FIRST, HALF, SECOND]


def victim(**spec: Any) -> Object:
    body = small(VICTIM, taints=BEFORE, annotations={"example.com/note": "kept"})
    body["spec"] |= spec
    return body


def taints(*wanted: Object) -> list[Object]:
    return [{"op": "add", "path": "/spec/taints", "value": list(wanted)}]


def set_to(path: str, value: Any) -> list[Object]:
    return [{"op": "add", "path": path, "value": value}]


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}
LABEL = "/metadata/labels/kubevirt.io~1schedulable"

FOREIGN: dict[str, list[Object]] = {
    "another-key": taints(*BEFORE, ours("example.com/third")),
    "a-key-that-begins-like-ours": taints(*BEFORE, ours(f"{OVERUTILIZED}-not")),
    "our-key-with-a-hard-effect": taints(*BEFORE, ours(OVERUTILIZED, effect="NoSchedule")),
    "our-key-with-the-hardest-effect": taints(*BEFORE, ours(APPROPRIATE, effect="NoExecute")),
    "our-key-with-another-value": taints(*BEFORE, ours(OVERUTILIZED, value="false")),
    "our-key-without-a-value": taints(*BEFORE, {"key": OVERUTILIZED, "effect": "PreferNoSchedule"}),
    "ours-beside-another": taints(*BEFORE, OVER, ours("example.com/third")),
    "removal-of-one": taints(FIRST, HALF),
    "removal-of-all": [{"op": "remove", "path": "/spec/taints"}],
    "replaced-by-ours": taints(HALF, OVER),
    "reorder": taints(SECOND, HALF, FIRST),
    "its-value": taints({**FIRST, "value": "2"}, HALF, SECOND),
    "its-effect": taints({**FIRST, "effect": "NoExecute"}, HALF, SECOND),
    "its-time": taints(FIRST, HALF, {**SECOND, "timeAdded": "2026-01-01T00:00:01Z"}),
    "loss-of-its-time": taints(FIRST, HALF, {"key": SECOND["key"], "effect": SECOND["effect"]}),
}
SPEC: dict[str, list[Object]] = {
    "cordon": set_to("/spec/unschedulable", True),
    "provider-id": set_to("/spec/providerID", "example:///a"),
    "pod-network": [*set_to("/spec/podCIDR", "10.0.0.0/24"), *set_to("/spec/podCIDRs", ["10.0.0.0/24"])],
    "cordon-beside-ours": [*taints(*BEFORE, OVER), *set_to("/spec/unschedulable", True)],
}
METADATA: dict[str, list[Object]] = {
    "label": set_to("/metadata/labels/a", "b"),
    "another-value-of-a-label": set_to(LABEL, "false"),
    "removal-of-a-label": [{"op": "remove", "path": LABEL}],
    "annotation": set_to("/metadata/annotations/a", "b"),
    "removal-of-annotations": [{"op": "remove", "path": "/metadata/annotations"}],
    "finalizer": set_to("/metadata/finalizers", ["example.com/held"]),
    "owner": set_to("/metadata/ownerReferences", [OWNER]),
    "label-beside-ours": [*taints(*BEFORE, OVER), *set_to("/metadata/labels/a", "b")],
}
MANAGED = "/metadata/managedFields"
ENTRY = {
    "apiVersion": "v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:spec": {"f:taints": {}}},
    "manager": NAME,
    "operation": "Update",
    "time": "2026-01-01T00:00:00Z",
}
MANAGERS: dict[str, list[Object]] = {
    "wiped": set_to(MANAGED, [{}]),
    "wiped-beside-ours": [*taints(*BEFORE, OVER), *set_to(MANAGED, [{}])],
    "all-but-ours": [*taints(*BEFORE, OVER), *set_to(MANAGED, [ENTRY])],
    "the-first": [{"op": "remove", "path": f"{MANAGED}/0"}],
}
PATCHES = {"taints": FOREIGN, "spec": SPEC, "metadata": METADATA, "managers": MANAGERS}
ALLOWED: dict[str, list[Object]] = {
    "one-more": taints(*BEFORE, OVER),
    "before-all-others": taints(OVER, *BEFORE),
    "elsewhere": taints(FIRST, SECOND, HALF),
    "one-less": taints(FIRST, SECOND),
    "the-other": taints(FIRST, OVER, SECOND),
    "with-a-time": taints(FIRST, SECOND, ours(OVERUTILIZED, timeAdded="2026-01-01T00:00:00Z")),
    "as-the-job-writes": [
        {"op": "test", "path": "/spec/taints", "value": BEFORE},
        {"op": "replace", "path": "/spec/taints", "value": [FIRST, SECOND, OVER, HALF]},
    ],
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request that changes the victim, or would."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON

    def by(self, access: Access | Wire) -> str:
        """Code and reason of the refusal; nothing where it succeeds."""
        return refusal(access, self.method, self.path, self.body, self.content_type)


def patch(operations: list[Object]) -> Attempt:
    return Attempt("PATCH", BY_US, operations, JSON_PATCH)


def own(kind: str, name: str = NAME) -> str:
    return f"/api/v1/namespaces/{NAME}/{kind}/{name}"


def named(name: str, **rest: Any) -> Object:
    return {"metadata": {"name": name}, **rest}


LABELLED = {"metadata": {"labels": {"a": "b"}}}
POD = {"containers": [{"name": "a", "image": "a"}]}
EVENT = {"involvedObject": {"kind": "Node", "name": VICTIM}, "reason": "Tainted", "message": "it was", "type": "Normal"}
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
SUBJECT = {"kind": "ServiceAccount", "name": NAME, "namespace": NAME}
ADMIN = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}

# What RBAC refuses, whatever the admission policy would say.
FORBIDDEN = {
    "status": Attempt("PATCH", f"{NODE}/status", {"status": {"phase": "Running"}}, MERGE_PATCH),
    "update": Attempt("PUT", NODE, victim()),
    "create": Attempt("POST", NODES, named("another")),
    "create-by-apply": Attempt(
        "PATCH",
        f"{NODES}/another?fieldManager=a",
        {"apiVersion": "v1", "kind": "Node", **named("another")},
        APPLY_PATCH,
    ),
    "delete": Attempt("DELETE", NODE),
    "delete-all": Attempt("DELETE", NODES),
    "watch": Attempt("GET", f"{NODES}?watch=true&timeoutSeconds=1"),
    "proxy": Attempt("GET", f"{NODE}/proxy/healthz"),
    "list-secrets": Attempt("GET", "/api/v1/secrets"),
    "list-own-secrets": Attempt("GET", f"/api/v1/namespaces/{NAME}/secrets"),
    "read-a-secret": Attempt("GET", own("secrets", "any")),
    "read-own-config": Attempt("GET", own("configmaps")),
    "change-own-config": Attempt("PATCH", own("configmaps"), {"data": {"config.json": "{}"}}, MERGE_PATCH),
    "read-config-elsewhere": Attempt("GET", "/api/v1/namespaces/kube-system/configmaps"),
    "lease-of-a-node": Attempt("POST", f"{LEASES}/kube-node-lease/leases", named(VICTIM)),
    "lease-elsewhere": Attempt("POST", f"{LEASES}/kube-system/leases", named("kube-scheduler")),
    "list-leases": Attempt("GET", f"{LEASES}/{NAME}/leases"),
    "delete-own-lease": Attempt("DELETE", LEASE),
    "patch-own-lease": Attempt("PATCH", LEASE, LABELLED, MERGE_PATCH),
    "another-lease": Attempt("PUT", f"{LEASES}/{NAME}/leases/another", named("another")),
    "event-elsewhere": Attempt("POST", "/api/v1/namespaces/kube-system/events", {**named("a"), **EVENT}),
    "list-events": Attempt("GET", "/api/v1/namespaces/default/events"),
    "delete-events": Attempt("DELETE", "/api/v1/namespaces/default/events"),
    "list-pods": Attempt("GET", "/api/v1/pods"),
    "create-a-pod": Attempt("POST", f"/api/v1/namespaces/{NAME}/pods", {**named("a"), "spec": POD}),
    "bind-a-pod": Attempt("POST", "/api/v1/namespaces/default/pods/a/binding", named("a", target={"name": VICTIM})),
    "evict-a-pod": Attempt(
        "POST",
        "/api/v1/namespaces/default/pods/a/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", **named("a")},
    ),
    "token": Attempt("POST", f"{ACCOUNT}/token", {"spec": {}}),
    "read-the-namespace": Attempt("GET", f"/api/v1/namespaces/{NAME}"),
    "more-permissions": Attempt("PATCH", f"{ROLES}/clusterroles/{NAME}", {"rules": EVERYTHING}, MERGE_PATCH),
    "more-permissions-here": Attempt(
        "PATCH", f"{ROLES}/namespaces/{NAME}/roles/{NAME}", {"rules": EVERYTHING}, MERGE_PATCH
    ),
    "another-role": Attempt("POST", f"{ROLES}/clusterrolebindings", named("a", roleRef=ADMIN, subjects=[SUBJECT])),
    "delete-the-policy": Attempt("DELETE", f"{POLICIES}/{NAME}"),
    "delete-the-binding": Attempt("DELETE", f"{BINDINGS}/{NAME}"),
    "change-own-job": Attempt("PATCH", f"/apis/batch/v1/namespaces/{NAME}/cronjobs/{NAME}", LABELLED, MERGE_PATCH),
    "metrics-of-the-server": Attempt("GET", "/metrics"),
}


@pytest.fixture(scope="module")
def tainter(apiserver: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tainter]:
    with softtaint.installed(apiserver, tmp_path_factory.mktemp("admission")) as found:
        yield found


@pytest.fixture
def node(tainter: Tainter) -> Iterator[Object]:
    """The victim."""
    with standing(tainter.admin) as found:
        yield found


@contextmanager
def standing(admin: Access) -> Iterator[Object]:
    wire = Wire(admin)
    try:
        add(wire, victim())
        yield wire.send("GET", NODE)
    finally:
        remove(wire)
        wire.close()


def remove(wire: Wire) -> None:
    wire.send("PATCH", NODE, {"metadata": {"finalizers": None}}, MERGE_PATCH)
    wire.send("DELETE", NODE)


def renew(wire: Wire) -> None:
    """The victim as it was."""
    remove(wire)
    add(wire, victim())


@pytest.mark.parametrize(
    ("part", "name"), [(part, name) for part, patches in PATCHES.items() for name in patches], ids=lambda text: text
)
def test_other_changes_of_a_node_are_refused(tainter: Tainter, node: Object, part: str, name: str) -> None:
    said = patch(PATCHES[part][name]).by(tainter.account)
    assert said.startswith("403"), said
    assert f"ValidatingAdmissionPolicy '{NAME}'" in said
    assert tainter.admin.get(NODE) == node


@pytest.mark.parametrize("content_type", [MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH])
def test_other_kinds_of_patches_are_refused_as_well(tainter: Tainter, node: Object, content_type: str) -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": VICTIM, "labels": {"a": "b"}}}
    manager = "?fieldManager=a" if content_type == APPLY_PATCH else ""
    said = Attempt("PATCH", NODE + manager, body, content_type).by(tainter.account)
    assert f"ValidatingAdmissionPolicy '{NAME}'" in said
    assert tainter.admin.get(NODE) == node


@pytest.mark.parametrize("name", ALLOWED)
def test_ours_may_come_and_go(tainter: Tainter, node: Object, name: str) -> None:
    assert not patch(ALLOWED[name]).by(tainter.account)
    after = tainter.admin.get(NODE)
    assert after["spec"]["taints"] == ALLOWED[name][-1]["value"]
    assert {**after["spec"], "taints": None} == {**node["spec"], "taints": None}


@pytest.mark.usefixtures("node")
def test_others_may_lose_the_list_of_taints(tainter: Tainter) -> None:
    """To us who write it next; and the oldest of more than ten writers lose their names to all the others."""

    def managers() -> set[str]:
        return {entry["manager"] for entry in tainter.admin.get(NODE)["metadata"]["managedFields"]}

    tainter.admin.send("PATCH", f"{NODE}?fieldManager=kubectl-taint", taints(*BEFORE, OVER), JSON_PATCH)
    assert "kubectl-taint" in managers()
    assert not Attempt("PATCH", BY_US, taints(*BEFORE), JSON_PATCH).by(tainter.account)
    assert NAME in managers()
    assert "kubectl-taint" not in managers()
    assert not Attempt("PATCH", BY_US, [{"op": "remove", "path": f"{MANAGED}/0"}], JSON_PATCH).by(tainter.admin)
    for number in range(10):
        label = set_to(f"/metadata/labels/l{number}", "x")
        tainter.admin.send("PATCH", f"{NODE}?fieldManager=writer-{number}", label, JSON_PATCH)
    for wanted in ([*BEFORE, OVER], BEFORE):
        assert not Attempt("PATCH", BY_US, taints(*wanted), JSON_PATCH).by(tainter.account)
    assert "ancient-changes" in managers()


@pytest.mark.usefixtures("node")
def test_the_first_and_the_last_taint(tainter: Tainter) -> None:
    tainter.admin.merge(NODE, {"spec": {"taints": None}})
    assert not patch(taints(OVER, HALF)).by(tainter.account)
    assert not patch([{"op": "remove", "path": "/spec/taints"}]).by(tainter.account)
    assert "taints" not in tainter.admin.get(NODE)["spec"]


def test_a_status_beside_ours_is_left_out_by_the_server(tainter: Tainter, node: Object) -> None:
    assert not patch([*taints(*BEFORE, OVER), *set_to("/status/phase", "Running")]).by(tainter.account)
    assert tainter.admin.get(NODE)["status"] == node["status"]


@pytest.mark.parametrize("name", FORBIDDEN)
def test_everything_else_is_forbidden(tainter: Tainter, node: Object, name: str) -> None:
    said = FORBIDDEN[name].by(tainter.account)
    assert said.startswith("403"), said
    assert "cannot" in said
    assert "ValidatingAdmissionPolicy" not in said
    assert tainter.admin.get(NODE) == node


def test_it_is_nobody_else(tainter: Tainter) -> None:
    for other in ("system:admin", f"system:serviceaccount:{NAME}:default"):
        ended = kubectl([f"--kubeconfig={tainter.account.kubeconfig}", "get", "nodes", f"--as={other}"])
        assert "cannot impersonate" in ended.stderr


@pytest.mark.usefixtures("node")
def test_what_the_job_does_is_allowed(tainter: Tainter) -> None:
    for attempt in (
        Attempt("GET", f"{NODES}?limit=1"),
        Attempt("GET", NODE),
        Attempt("POST", LEASE.rpartition("/")[0], named(NAME)),
        Attempt("GET", LEASE),
        Attempt("POST", "/api/v1/namespaces/default/events", {**named("soft-taint-of-a-victim"), **EVENT}),
        Attempt("PATCH", "/api/v1/namespaces/default/events/soft-taint-of-a-victim", {"count": 2}, MERGE_PATCH),
    ):
        assert not attempt.by(tainter.account), attempt
    lease = tainter.account.get(LEASE)
    assert not Attempt("PUT", LEASE, {**lease, "spec": {"holderIdentity": "a"}}).by(tainter.account)
    tainter.admin.delete("/api/v1/namespaces/default/events/soft-taint-of-a-victim")


@pytest.mark.usefixtures("node")
def test_others_are_not_held_to_it(tainter: Tainter) -> None:
    """The same role and the same name, but of another namespace."""
    admin, folder = tainter.admin, tainter.folder
    path = f"/api/v1/namespaces/default/serviceaccounts/{NAME}"
    admin.create_at(path.rpartition("/")[0], named(NAME))
    role = {**ADMIN, "name": NAME}
    admin.create_at(
        f"{ROLES}/clusterrolebindings", named("another", roleRef=role, subjects=[{**SUBJECT, "namespace": "default"}])
    )
    try:
        token = admin.create_at(f"{path}/token", {"spec": {}})["status"]["token"]
        other = Access.create(admin.port, admin.authority, token, folder / "other.kubeconfig")
        until(lambda: not Attempt("GET", NODE).by(other), "the binding of another account")
        with closing(Wire(admin)) as wire:
            for operations in (one for patches in PATCHES.values() for one in patches.values()):
                assert not patch(operations).by(other), operations
                renew(wire)
    finally:
        admin.delete(path)
        admin.delete(f"{ROLES}/clusterrolebindings/another")


@pytest.mark.parametrize("form", ["CronJob", "Deployment"])
def test_the_pod_passes_the_restricted_level(tainter: Tainter, form: str) -> None:
    """In the rendered Namespace, which enforces it."""
    spec = of_kind(softtaint.rendered(runAs=form), form)["spec"]
    template = spec["jobTemplate"]["spec"]["template"] if form == "CronJob" else spec["template"]
    pods = f"/api/v1/namespaces/{NAME}/pods"
    pod = {**template, "metadata": {**template["metadata"], "name": form.lower()}}
    tainter.admin.create_at(pods, pod)
    tainter.admin.delete(f"{pods}/{form.lower()}")
    lax = copy.deepcopy(pod)
    del lax["spec"]["containers"][0]["securityContext"]["capabilities"]
    assert "violates PodSecurity" in Attempt("POST", pods, lax).by(tainter.admin)


Change = Callable[[Object, Object], None]
"""Weakens the policy and its binding, in place."""


@dataclass(frozen=True, slots=True)
class Weaker:
    """A policy that lets something through, and what: attempts by part and name, or all of them."""

    change: Change
    through: set[tuple[str, str]] = field(default_factory=set)
    part: str = ""


def without(number: int) -> Change:
    def change(policy: Object, _: Object) -> None:
        del policy["spec"]["validations"][number]

    return change


def replaced(old: str, new: str) -> Change:
    """In the expressions of the policy."""

    def change(policy: Object, _: Object) -> None:
        text = json.dumps(policy["spec"])
        before, after = (json.dumps(part)[1:-1] for part in (old, new))
        assert before in text
        policy["spec"] = json.loads(text.replace(before, after))

    return change


def resource(field: str, value: list[str]) -> Change:
    def change(policy: Object, _: Object) -> None:
        policy["spec"]["matchConstraints"]["resourceRules"][0][field] = value

    return change


def actions(*wanted: str) -> Change:
    def change(_: Object, binding: Object) -> None:
        binding["spec"]["validationActions"] = list(wanted)

    return change


STATUS = ("status", "phase")
MORE = {**PATCHES, "status": {"phase": set_to("/status/phase", "Running")}}
WEAKER = {
    "no-rule-for-taints": Weaker(without(0), part="taints"),
    "no-rule-for-spec": Weaker(without(1), part="spec"),
    "no-rule-for-metadata": Weaker(without(2), part="metadata"),
    "no-rule-for-the-rest": Weaker(without(3), part="status"),
    "no-rule-for-managers": Weaker(without(4), part="managers"),
    "only-audited": Weaker(actions("Audit")),
    "only-warned-of": Weaker(actions("Warn")),
    "for-another-account": Weaker(replaced(f":{NAME}:{NAME}", f":{NAME}:default")),
    "for-creations": Weaker(resource("operations", ["CREATE"])),
    "without-subresources": Weaker(resource("resources", ["nodes"]), {STATUS}),
    "any-value": Weaker(
        replaced(' && has(t.value) && t.value == "true"', ""),
        {("taints", "our-key-with-another-value"), ("taints", "our-key-without-a-value")},
    ),
    "any-effect": Weaker(
        replaced(' && t.effect == "PreferNoSchedule"', ""),
        {("taints", "our-key-with-a-hard-effect"), ("taints", "our-key-with-the-hardest-effect")},
    ),
    "any-key": Weaker(
        replaced(f't.key in ["{OVERUTILIZED}", "{APPROPRIATE}"] && ', ""),
        {("taints", name) for name in ("another-key", "a-key-that-begins-like-ours", "ours-beside-another")},
    ),
    "labels-left-out": Weaker(
        replaced('["generation", ', '["labels", "generation", '),
        {("metadata", name) for name in METADATA if "label" in name},
    ),
    "blind-to-removed-metadata": Weaker(
        replaced(
            ' + dyn(oldObject.metadata).filter(k, !(k in ["generation", ', ' + dyn({}).filter(k, !(k in ["generation", '
        ),
        {("metadata", "removal-of-annotations")},
    ),
}


@pytest.fixture(scope="module")
def generous(tainter: Tainter) -> Iterator[Tainter]:
    """Somebody gave the account more than is rendered: the policy alone has to hold."""
    admin, name = tainter.admin, "generous"
    rules = [{"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["patch", "update"]}]
    admin.create_at(f"{ROLES}/clusterroles", named(name, rules=rules))
    admin.create_at(f"{ROLES}/clusterrolebindings", named(name, roleRef={**ADMIN, "name": name}, subjects=[SUBJECT]))
    yield tainter
    admin.delete(f"{ROLES}/clusterrolebindings/{name}")
    admin.delete(f"{ROLES}/clusterroles/{name}")


def attempt(part: str, name: str) -> Attempt:
    return Attempt("PATCH", BY_US if part != "status" else f"{NODE}/status", MORE[part][name], JSON_PATCH)


def passed(tainter: Tainter) -> set[tuple[str, str]]:
    """The attempts that succeed now, each on the victim as it was."""
    found = set()
    with closing(Wire(tainter.admin)) as admin, closing(Wire(tainter.account)) as account:
        for part, name in ((part, name) for part, patches in MORE.items() for name in patches):
            if not attempt(part, name).by(account):
                found.add((part, name))
                renew(admin)
    return found


@pytest.mark.usefixtures("node")
def test_the_policy_holds_without_the_help_of_rbac(generous: Tainter) -> None:
    until(lambda: "ValidatingAdmissionPolicy" in attempt(*STATUS).by(generous.account), "the additional role")
    assert not passed(generous)
    wanted = {**generous.admin.get(NODE), "status": {}}
    wanted["metadata"]["labels"]["a"] = "b"
    assert "ValidatingAdmissionPolicy" in Attempt("PUT", NODE, wanted).by(generous.account)


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("name", WEAKER)
def test_every_part_of_the_policy_is_needed(generous: Tainter, name: str) -> None:
    """Once it is weaker, exactly what it was there for gets through."""
    weaker = WEAKER[name]
    parts = {weaker.part} if weaker.part else set(MORE)
    expected = weaker.through or {(part, one) for part in parts for one in MORE[part]}
    with weakened(generous, weaker.change, min(expected)):
        assert passed(generous) == expected


@contextmanager
def weakened(tainter: Tainter, change: Change, sign: tuple[str, str]) -> Iterator[None]:
    """`sign` is an attempt that succeeds once the server has taken the change up."""
    paths = [f"{POLICIES}/{NAME}", f"{BINDINGS}/{NAME}"]
    before = [tainter.admin.get(path) for path in paths]
    after = copy.deepcopy(before)
    change(*after)

    with closing(Wire(tainter.admin)) as admin, closing(Wire(tainter.account)) as account:

        def let_through() -> bool:
            if attempt(*sign).by(account):
                return False
            renew(admin)
            return True

        try:
            put(admin, paths, after)
            until(let_through, "the weaker policy", seconds=30)
            yield
        finally:
            put(admin, paths, before)
            until(lambda: not let_through(), "the policy as it is rendered")


def put(admin: Wire, paths: list[str], bodies: list[Object]) -> None:
    for path, body in zip(paths, bodies, strict=True):
        version = admin.send("GET", path)["metadata"]["resourceVersion"]
        admin.send("PUT", path, {**body, "metadata": {**body["metadata"], "resourceVersion": version}})
