"""The soft-tainter as objects of its own namespace: account, permissions, configuration, workload, walls around it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from renderer.kinds import soft_taint_admission, soft_taint_workload
from renderer.kinds.objects import binding, manifest, meta, role, rule
from renderer.kinds.soft_taint_spec import CONFIG_FILE
from renderer.kinds.soft_taint_workload import Workload
from renderer.model import Body
from renderer.softtaint.config import NAME, PORT

_ACCOUNT = (NAME, NAME)
_LEASES = "coordination.k8s.io"
_CA = f"{NAME}-ca"
_INJECT = "service.beta.openshift.io/inject-cabundle"
_MONITORING = "cluster-monitoring-view"
"""Reads all series of the platform's Prometheus (openshift/cluster-monitoring-operator manifests)."""
EVENTS = "default"
"""Where events about nodes are: an object without a namespace has them there."""

Annotate = Callable[..., dict[str, str]]
"""The delivery engine's annotations, as `engine_annotations` gives them for a site."""


@dataclass(frozen=True, slots=True)
class Job:
    """One cluster's tainter; `config` is the text of its configuration, `url` its Prometheus, if it asks one."""

    config: str
    url: str | None
    workload: Workload
    openshift: bool
    views_monitoring: bool
    admission: bool
    rule_labels: dict[str, str]


def service_ca() -> tuple[str, str]:
    """Name and key of the ConfigMap into which OpenShift writes the CA of its services."""
    return _CA, "service-ca.crt"


def objects(job: Job, annotate: Annotate) -> Iterator[tuple[str, Body]]:
    """Each object with the name of its file."""
    yield "namespace", _namespace(annotate)
    yield "serviceaccount", manifest("v1", "ServiceAccount", _meta(annotate), automountServiceAccountToken=False)
    yield from _permissions(job, annotate)
    config = _meta(annotate, text=job.config)
    yield CONFIG_FILE, manifest("v1", "ConfigMap", config, data={"config.json": job.config})
    if job.workload.ca == service_ca():
        metadata = _meta(annotate, name=_CA)
        metadata["annotations"] = {**metadata.get("annotations", {}), _INJECT: "true"}
        yield "configmap-ca", manifest("v1", "ConfigMap", metadata)
    yield from soft_taint_workload.objects(job.workload, job.config, _meta(annotate))
    if job.workload.monitor:
        yield "podmonitor", _pod_monitor(job, annotate)
    yield "networkpolicy", _network_policy(job, annotate)
    if job.admission:
        yield "validatingadmissionpolicy", soft_taint_admission.policy(_meta(annotate, None))
        yield "validatingadmissionpolicybinding", soft_taint_admission.binding(_meta(annotate, None))


def _meta(
    annotate: Annotate, namespace: str | None = NAME, *, name: str = NAME, custom: bool = False, text: str = ""
) -> dict[str, Any]:
    annotations = annotate(custom=custom, text=text)
    return meta(name, namespace, soft_taint_workload.LABELS, annotations)


def _namespace(annotate: Annotate) -> Body:
    metadata = _meta(annotate, None)
    metadata["labels"] |= {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("audit", "enforce", "warn")}
    return manifest("v1", "Namespace", metadata)


def _permissions(job: Job, annotate: Annotate) -> Iterator[tuple[str, Body]]:
    """A Lease is created by the job itself; a rule for creation cannot name it."""
    whole = _meta(annotate, None)
    yield "clusterrole", role(whole, [rule("", ["nodes"], ["get", "list", "patch"])])
    yield "clusterrolebinding", binding(whole, "ClusterRole", NAME, _ACCOUNT)
    if job.views_monitoring:
        view = _meta(annotate, None, name=f"{NAME}-monitoring")
        yield "clusterrolebinding-monitoring", binding(view, "ClusterRole", _MONITORING, _ACCOUNT)
    held = rule(_LEASES, ["leases"], ["get", "update"]) | {"resourceNames": [NAME]}
    lease = [rule(_LEASES, ["leases"], ["create"]), held]
    events = [rule("", ["events"], ["create", "get", "patch"])]
    for suffix, namespace, rules in (("", NAME, lease), ("-events", EVENTS, events)):
        where = _meta(annotate, namespace)
        yield f"role{suffix}", role(where, rules)
        yield f"rolebinding{suffix}", binding(where, "Role", NAME, _ACCOUNT)


def _pod_monitor(job: Job, annotate: Annotate) -> Body:
    metadata = _meta(annotate, custom=True)
    metadata["labels"] |= job.rule_labels
    spec = {
        "selector": {"matchLabels": dict(soft_taint_workload.LABELS)},
        "podMetricsEndpoints": [{"port": soft_taint_workload.PORT_NAME}],
    }
    return manifest("monitoring.coreos.com/v1", "PodMonitor", metadata, spec=spec)


def _network_policy(job: Job, annotate: Annotate) -> Body:
    """Ports behind the Services: DNS answers on 5353 on OpenShift, most API servers on 6443."""
    names = (53, 5353) if job.openshift else (53,)
    wires = sorted({443, 6443, *([_port(job.url)] if job.url else [])})
    egress = [{"ports": [_wire(port, protocol) for port in names for protocol in ("TCP", "UDP")]}]
    egress.append({"ports": [_wire(port) for port in wires]})
    spec: dict[str, Any] = {"podSelector": {"matchLabels": dict(soft_taint_workload.LABELS)}, "egress": egress}
    if job.workload.run_as == "Deployment":
        spec["ingress"] = [{"ports": [_wire(PORT)]}]
    spec["policyTypes"] = ["Egress", "Ingress"]
    return manifest("networking.k8s.io/v1", "NetworkPolicy", _meta(annotate), spec=spec)


def _wire(port: int, protocol: str = "TCP") -> dict[str, Any]:
    return {"port": port, "protocol": protocol}


def _port(url: str) -> int:
    """The port of an address that the Cluster's own check let through; its scheme's where it names none or nonsense."""
    address = urlsplit(url)
    try:
        return address.port or (443 if address.scheme == "https" else 80)
    except ValueError:
        return 443 if address.scheme == "https" else 80
