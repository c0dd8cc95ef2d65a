"""Kubernetes objects as plain data, for kinds that bring several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from renderer.model import Body

_RBAC = "rbac.authorization.k8s.io"


def meta(name: str, namespace: str | None, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
    """An object's metadata; no namespace for an object of the whole cluster."""
    return {
        "name": name,
        "labels": dict(labels),
        **({"namespace": namespace} if namespace else {}),
        **({"annotations": dict(annotations)} if annotations else {}),
    }


def manifest(api_version: str, kind: str, metadata: dict[str, Any], **rest: Any) -> Body:
    """An object; `rest` is what stands beside its metadata."""
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> dict[str, Any]:
    """What a role allows in one API group; "" is the core."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def role(metadata: dict[str, Any], rules: Sequence[dict[str, Any]]) -> Body:
    """A Role in the namespace of its metadata, or a ClusterRole without one."""
    return manifest(f"{_RBAC}/v1", _scoped("Role", metadata), metadata, rules=list(rules))


def binding(metadata: dict[str, Any], role_kind: str, role: str, account: tuple[str, str]) -> Body:
    """Gives a service account, by namespace and name, a role where the metadata has a namespace, else everywhere."""
    namespace, name = account
    return manifest(
        f"{_RBAC}/v1",
        _scoped("RoleBinding", metadata),
        metadata,
        roleRef={"apiGroup": _RBAC, "kind": role_kind, "name": role},
        subjects=[{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    )


def _scoped(kind: str, metadata: Mapping[str, Any]) -> str:
    return kind if "namespace" in metadata else f"Cluster{kind}"
