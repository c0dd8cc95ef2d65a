"""The upstream descheduler as objects for `kube-system`: its policy, workload and permissions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from renderer import emit
from renderer.kinds.upstream_policy import Source
from renderer.model import Body
from renderer.releases import descheduler
from renderer.releases.descheduler import Release

_RBAC = "rbac.authorization.k8s.io"
_ACCOUNT = "descheduler-sa"
_POLICY = "descheduler-policy-configmap"
_ROLE = "descheduler-cluster-role"
_TOKEN_ROLE = "descheduler-prometheus-token"  # noqa: S105  (the name of a Role)
_LABELS = {"app": "descheduler"}
"""All names are those of the project's own manifests (v0.36.0 kubernetes/base), so that what was installed from them
is taken over and never runs beside ours."""

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
    yield "clusterrole", _object(f"{_RBAC}/v1", "ClusterRole", _meta(_ROLE, annotations, None), rules=_rules(release))
    yield "clusterrolebinding", _binding("ClusterRoleBinding", "ClusterRole", _ROLE, _meta(_ROLE, annotations, None))
    yield (
        "configmap",
        _object("v1", "ConfigMap", _meta(_POLICY, annotations), data={"policy.yaml": text}),
    )
    yield "deployment", _deployment(text, release, workload, annotations)
    if source is not None and source.token is not None:
        where = _meta(_TOKEN_ROLE, annotations, source.token[0])
        secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}
        yield "role", _object(f"{_RBAC}/v1", "Role", where, rules=[secrets])
        yield "rolebinding", _binding("RoleBinding", "Role", _TOKEN_ROLE, where)
    yield "serviceaccount", _object("v1", "ServiceAccount", _meta(_ACCOUNT, annotations))


def _meta(name: str, annotations: dict[str, str], namespace: str | None = descheduler.NAMESPACE) -> dict[str, Any]:
    return {
        "name": name,
        "labels": dict(_LABELS),
        **({"namespace": namespace} if namespace else {}),
        **({"annotations": dict(annotations)} if annotations else {}),
    }


def _object(api_version: str, kind: str, metadata: dict[str, Any], **rest: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def _binding(kind: str, role_kind: str, role: str, metadata: dict[str, Any]) -> Body:
    return _object(
        f"{_RBAC}/v1",
        kind,
        metadata,
        roleRef={"apiGroup": _RBAC, "kind": role_kind, "name": role},
        subjects=[{"kind": "ServiceAccount", "name": _ACCOUNT, "namespace": descheduler.NAMESPACE}],
    )


def _rules(release: Release) -> list[dict[str, Any]]:
    """What the release watches and writes with our policy: no leases (one replica), no metrics server, no deletes."""
    read = ["get", "list", "watch"]
    rules = [
        _rule("", ["namespaces", "nodes", "pods"], read),
        _rule("", ["pods/eviction"], ["create"]),
        _rule("events.k8s.io", ["events"], ["create", "update"]),
        _rule("scheduling.k8s.io", ["priorityclasses"], read),
    ]
    if release.budgets:
        rules.append(_rule("policy", ["poddisruptionbudgets"], read))
    if release.claims:
        rules.append(_rule("", ["persistentvolumeclaims"], read))
    return rules


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


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
    return _object("apps/v1", "Deployment", _meta("descheduler", annotations), spec=spec)


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
