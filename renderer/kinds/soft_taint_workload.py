"""What runs the soft-tainter: a CronJob with a pod for each pass, or a Deployment of two."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from renderer.model import Body
from renderer.releases.descheduler import TOKEN_KEY
from renderer.softtaint.config import FILE, FOLDER, NAME, PORT, RunAs

LABELS = {"app.kubernetes.io/name": NAME}
PORT_NAME = "metrics"
DIGEST = "kubevirt-policy.dev/config-digest"
"""The configuration is read once, at the start: a changed digest starts the Deployment's pods anew."""

_USER = 65532
_LONGEST_PASS = 300
_GRACE = 60
"""Seconds to hear of the writes under way, which is up to half a minute where the API server is slow, and to give the
Lease back: what is killed before that keeps the next instance waiting until the Lease runs out."""
_KEPT = 86_400


@dataclass(frozen=True, slots=True)
class Workload:
    """`every` in seconds; `schedule` in cron's words; `ca` is name and key of a ConfigMap, `token` names a Secret.

    `fixed_user`: the pod names its user; OpenShift gives one of the namespace's range.
    """

    image: str
    run_as: RunAs
    every: int
    schedule: str
    ca: tuple[str, str] | None
    token: str | None
    fixed_user: bool
    monitor: bool
    annotated: bool


def ca_path(key: str) -> str:
    """Where the certificates are in the pod."""
    return f"{FOLDER}/ca/{key}"


def token_path() -> str:
    """Where the token from a Secret is in the pod; its key is the descheduler's."""
    return f"{FOLDER}/token/{TOKEN_KEY}"


def objects(workload: Workload, config: str, metadata: dict[str, Any]) -> Iterator[tuple[str, Body]]:
    """Each object with the name of its file; `metadata` is that of all of them."""
    if workload.run_as == "CronJob":
        yield "cronjob", {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": _cron(workload)}
        return
    digest = hashlib.sha256(config.encode()).hexdigest()
    annotations = {DIGEST: f"sha256:{digest}"}
    if workload.annotated:
        annotations |= {"prometheus.io/port": str(PORT), "prometheus.io/scrape": "true"}
    spec = {
        "replicas": 2,  # one works; the other takes its Lease over at once
        "selector": {"matchLabels": dict(LABELS)},
        "template": {"metadata": {"annotations": annotations, "labels": dict(LABELS)}, "spec": _pod(workload)},
    }
    yield "deployment", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": dict(LABELS)}}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    yield "poddisruptionbudget", {**kind, "metadata": metadata, "spec": budget}


def _cron(workload: Workload) -> dict[str, Any]:
    """A pass that cannot start before the next is due is left out, and one that hangs is ended."""
    job = {
        "activeDeadlineSeconds": _LONGEST_PASS,
        "backoffLimit": 0,  # the next pass is the retry
        "template": {"metadata": {"labels": dict(LABELS)}, "spec": {**_pod(workload), "restartPolicy": "Never"}},
        "ttlSecondsAfterFinished": _KEPT,  # for jobs started by hand, which no history limit counts
    }
    return {
        "concurrencyPolicy": "Forbid",
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {"metadata": {"labels": dict(LABELS)}, "spec": job},
        "schedule": workload.schedule,
        "startingDeadlineSeconds": min(workload.every, _LONGEST_PASS),
        "successfulJobsHistoryLimit": 1,
    }


def _pod(workload: Workload) -> dict[str, Any]:
    user = {"runAsGroup": _USER, "runAsUser": _USER} if workload.fixed_user else {}
    pod: dict[str, Any] = {
        "automountServiceAccountToken": True,
        "containers": [_container(workload)],
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, **user, "seccompProfile": {"type": "RuntimeDefault"}},
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": _GRACE,
        "volumes": [{"name": "config", "projected": {"sources": list(_sources(workload))}}],
    }
    if workload.run_as == "Deployment":
        pod["topologySpreadConstraints"] = [
            {
                "labelSelector": {"matchLabels": dict(LABELS)},
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
            }
        ]
    return pod


def _sources(workload: Workload) -> Iterator[dict[str, Any]]:
    """One volume for all of them: a mount cannot be made inside another that is read-only."""
    yield {"configMap": _file(NAME, "config.json", FILE)}
    if workload.ca is not None:
        name, key = workload.ca
        yield {"configMap": _file(name, key, ca_path(key))}
    if workload.token is not None:
        yield {"secret": _file(workload.token, TOKEN_KEY, token_path())}


def _file(name: str, key: str, path: str) -> dict[str, Any]:
    return {"name": name, "items": [{"key": key, "path": path.removeprefix(f"{FOLDER}/")}]}


def _container(workload: Workload) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "soft-tainter",
        "image": workload.image,
        "resources": {"limits": {"cpu": "1", "memory": "256Mi"}, "requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config", "mountPath": FOLDER, "readOnly": True}],
    }
    if workload.run_as == "Deployment":
        container |= {
            "livenessProbe": {**_probe("/healthz"), "failureThreshold": 3, "initialDelaySeconds": 10},
            "ports": [{"containerPort": PORT, "name": PORT_NAME, "protocol": "TCP"}],
            "readinessProbe": _probe("/readyz"),
        }
    return container


def _probe(path: str) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": PORT, "scheme": "HTTP"}, "periodSeconds": 10}
