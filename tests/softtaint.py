"""The soft-tainter as it is rendered, on a real API server: its objects applied, and the program run as its account."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from renderer.softtaint.config import NAME
from renderer.softtaint.taints import APPROPRIATE, OVERUTILIZED, ours
from tests import repository
from tests.testbed.access import Access, Refused
from tests.testbed.nodes import MERGE_PATCH, NODES, Object, Wire, taints
from tests.testbed.processes import until

FOLDER = "/soft-tainter/"
IMAGE = f"registry.example/{NAME}@sha256:{'0' * 64}"
ACCOUNT = f"/api/v1/namespaces/{NAME}/serviceaccounts/{NAME}"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAME}/leases/{NAME}"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
GOOD, PARTLY, WRONG, NO_SAMPLES, NO_API, REMOVED, HELD, STOPPED = range(8)
"""The program's exit codes."""


def rendered(**soft_taint: Any) -> list[Object]:
    """What is rendered for the soft-tainter of a cluster without a platform of its own."""
    documents = [
        repository.cluster(
            platform="kubernetes",
            versions={"kubevirt": "1.7", "descheduler": "0.36", "kubernetes": "1.36"},
            monitoring={"url": "http://prometheus.example:9090"},
        ),
        repository.policy(
            "RebalancePolicy",
            mode="Automatic",
            thresholds={"static": "Medium"},
            utilization={"query": "load"},
            softTaint={"mode": "Enforce", "image": IMAGE, **soft_taint},
        ),
    ]
    outcome = repository.render(documents)
    assert not outcome.failed, outcome.findings
    texts = {path: text for path, text in outcome.files.items() if FOLDER in path}
    bodies = [yaml.safe_load(text) for path, text in texts.items() if not path.endswith("/kustomization.yaml")]
    return sorted(bodies, key=lambda body: body["kind"] != "Namespace")  # the order of those who apply them


def of_kind(objects: Sequence[Object], kind: str) -> Object:
    """The only object of a kind."""
    [found] = [body for body in objects if body["kind"] == kind]
    return found


@dataclass(frozen=True, slots=True)
class Ended:
    """A run of the program: its exit code, and what it logged, line by line."""

    code: int
    lines: list[dict[str, Any]]
    text: str
    seconds: float

    @property
    def summary(self) -> dict[str, Any]:
        """The closing line."""
        return self.lines[-1]


@dataclass
class Tainter:
    """The rendered soft-tainter on an API server.  `account` is what its pod would be."""

    admin: Access
    account: Access
    folder: Path
    objects: list[Object]
    runs: int = field(default=0)

    def config(self, prometheus: str | dict[str, str] | None, query: str | None = "load", **changes: Any) -> Path:
        """The rendered configuration with other changes and another Prometheus: its address, or all about it."""
        self.runs += 1
        given = json.loads(of_kind(self.objects, "ConfigMap")["data"]["config.json"])
        server = {"url": prometheus} if isinstance(prometheus, str) else prometheus
        known = {**given, "prometheus": server, "query": query, **changes}
        path = self.folder / f"config-{self.runs}.json"
        path.write_text(json.dumps(known))
        return path

    def command(self, config: Path, *arguments: str) -> list[str]:
        program = [sys.executable, "-m", "renderer.softtaint", "--once"]
        return [*program, f"--config={config}", f"--kubeconfig={self.account.kubeconfig}", *arguments]

    def start(self, config: Path, *arguments: str) -> subprocess.Popen[str]:
        """A run under way: its output is in pipes."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.command(config, *arguments), env=environment(), stdout=pipe, stderr=subprocess.STDOUT, text=True
        )

    def run(self, config: Path, *arguments: str) -> Ended:
        """One pass."""
        began = time.monotonic()
        return ended(self.start(config, *arguments), began)


def ended(process: subprocess.Popen[str], began: float = 0.0) -> Ended:
    """Wait for a run."""
    text, _ = process.communicate(timeout=120)
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return Ended(process.returncode, lines, text, time.monotonic() - began)


def environment() -> Mapping[str, str]:
    """Of a pod: nothing of the person who runs the tests."""
    return {"HOME": "/nonexistent", "PATH": os.defpath, "PYTHONPATH": os.fspath(Path(__file__).parents[1])}


@contextmanager
def installed(admin: Access, folder: Path, **soft_taint: Any) -> Iterator[Tainter]:
    """Everything that is rendered is applied, and gone afterwards."""
    objects = rendered(**soft_taint)
    try:
        applied = admin.apply(yaml.safe_dump_all(objects), "argocd-controller")
        assert applied.ok, applied.output
        account = admitted(admin, folder)
        until(lambda: guarded(admin, account), "the admission policy")
        yield Tainter(admin, account, folder, objects)
    finally:
        for body in reversed(objects):
            if body["kind"] != "Namespace":  # nothing here would finish its deletion
                remove(admin, admin.path(body))
        remove(admin, LEASE)


def admitted(admin: Access, folder: Path) -> Access:
    """The rendered account, with a token of its own."""
    token = admin.create_at(
        f"{ACCOUNT}/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    )["status"]["token"]
    return Access.create(admin.port, admin.authority, token, folder / "account.kubeconfig")


def guarded(admin: Access, account: Access) -> bool:
    """Whether the policy is in force: the server takes it up a moment after it was applied."""
    name = "probe-of-the-admission-policy"
    admin.create_at(NODES, {"metadata": {"name": name}})
    try:
        change = {"metadata": {"labels": {"probe": "true"}}}
        return refusal(account, "PATCH", f"{NODES}/{name}", change, MERGE_PATCH).startswith("403")
    finally:
        admin.delete(f"{NODES}/{name}")


def refusal(
    access: Access | Wire, method: str, path: str, body: Any = None, content_type: str = "application/json"
) -> str:
    """Code and reason of a refusal; nothing where the request was answered well."""
    try:
        access.send(method, path, body, content_type)
    except Refused as refused:
        return str(refused)
    return ""


def remove(access: Access, path: str) -> None:
    try:
        access.delete(path)
    except Refused as refused:
        if not refused.missing:
            raise


def level(node: Object) -> int:
    """How many taints of ours it has: 0, 1 or 2.  Anything else is none of ours."""
    found = [taint["key"] for taint in taints(node) if ours(taint)]
    assert found in ([], [APPROPRIATE], [OVERUTILIZED, APPROPRIATE], [APPROPRIATE, OVERUTILIZED]), found
    return len(found)
