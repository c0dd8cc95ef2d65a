"""The upstream descheduler as objects for `kube-system`: its policy, workload and permissions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from renderer import emit
from renderer.kinds.objects import binding, manifest, meta, role, rule
from renderer.kinds.upstream_policy import Source
from renderer.model import Body
from renderer.releases import descheduler
from renderer.releases.descheduler import Release

_ACCOUNT = "descheduler-sa"
_POLICY = "descheduler-policy-configmap"
_ROLE = "descheduler-cluster-role"
_TOKEN_ROLE = "descheduler-prometheus-token"  # noqa: S105  (the name of a Role)
_LABELS = {"app": "descheduler"}
"""All names are those of the project's own manifests (v0.36.0 kubernetes/base), so that what was installed from them
is taken over and never runs beside ours."""

_READ = ("get", "list", "watch")

DIGEST = "kubevirt-policy.dev/policy-digest"
"""The policy is read once, at the start: a changed digest starts the pod anew."""


@dataclass(frozen=True, slots=True)
class Workload:
    """How the descheduler runs; `version` is that of its image."""

    version: str
    interval: int
    dry_run: bool


def objects(
    policy: Body, release: Release, workload: Workload, source: Source | None, annotations: dict[str, str]
) -> Iterator[tuple[str, Body]]:
    """Each object with the name of its file."""
    text = emit.yaml(policy)
    account = (descheduler.NAMESPACE, _ACCOUNT)
    everywhere = _meta(_ROLE, annotations, None)
    yield "clusterrole", role(everywhere, _rules(release))
    yield "clusterrolebinding", binding(everywhere, "ClusterRole", _ROLE, account)
    yield "configmap", manifest("v1", "ConfigMap", _meta(_POLICY, annotations), data={"policy.yaml": text})
    yield "deployment", _deployment(text, release, workload, annotations)
    if source is not None and source.token is not None:
        where = _meta(_TOKEN_ROLE, annotations, source.token[0])
        yield "role", role(where, [rule("", ["secrets"], _READ)])
        yield "rolebinding", binding(where, "Role", _TOKEN_ROLE, account)
    yield "serviceaccount", manifest("v1", "ServiceAccount", _meta(_ACCOUNT, annotations))


def _meta(name: str, annotations: dict[str, str], namespace: str | None = descheduler.NAMESPACE) -> dict[str, Any]:
    return meta(name, namespace, _LABELS, annotations)


def _rules(release: Release) -> list[dict[str, Any]]:
    """What the release watches and writes with our policy: no leases (one replica), no metrics server, no deletes."""
    rules = [
        rule("", ["namespaces", "nodes", "pods"], _READ),
        rule("", ["pods/eviction"], ["create"]),
        rule("events.k8s.io", ["events"], ["create", "update"]),
        rule("scheduling.k8s.io", ["priorityclasses"], _READ),
    ]
    if release.budgets:
        rules.append(rule("policy", ["poddisruptionbudgets"], _READ))
    if release.claims:
        rules.append(rule("", ["persistentvolumeclaims"], _READ))
    return rules


def _deployment(policy: str, release: Release, workload: Workload, annotations: dict[str, str]) -> Body:
    digest = hashlib.sha256(policy.encode()).hexdigest()
    pod = {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": _ACCOUNT,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(release, workload)],
        "volumes": [{"name": "policy", "configMap": {"name": _POLICY}}],
    }
    spec = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},  # two at a time would evict twice
        "selector": {"matchLabels": dict(_LABELS)},
        "template": {"metadata": {"annotations": {DIGEST: f"sha256:{digest}"}, "labels": dict(_LABELS)}, "spec": pod},
    }
    return manifest("apps/v1", "Deployment", _meta("descheduler", annotations), spec=spec)


def _container(release: Release, workload: Workload) -> dict[str, Any]:
    health = {"httpGet": {"path": "/healthz", "port": descheduler.PORT, "scheme": "HTTPS"}}
    return {
        "name": "descheduler",
        "image": f"{descheduler.IMAGE}:v{workload.version}",
        "command": ["/bin/descheduler"],
        "args": list(_arguments(release, workload)),
        "ports": [{"containerPort": descheduler.PORT, "name": "metrics", "protocol": "TCP"}],
        "livenessProbe": {**health, "initialDelaySeconds": 5, "periodSeconds": 10, "failureThreshold": 3},
        "readinessProbe": {**health, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "policy", "mountPath": "/policy-dir", "readOnly": True}],
    }


def _arguments(release: Release, workload: Workload) -> Iterator[str]:
    yield "--policy-config-file=/policy-dir/policy.yaml"
    yield f"--descheduling-interval={workload.interval}s"
    if release.background:
        yield "--feature-gates=EvictionsInBackground=true"
    if workload.dry_run:
        yield "--dry-run=true"
    yield "--v=3"
