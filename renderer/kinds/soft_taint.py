"""`softTaint` of a `RebalancePolicy`: the job, where the platform has no tainter of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from urllib.parse import urlsplit

from renderer.kinds import (
    rule_objects,
    soft_taint_findings,
    soft_taint_handover,
    soft_taint_objects,
    soft_taint_schedule,
    soft_taint_workload,
    upstream_policy,
)
from renderer.kinds.base import Request, Site
from renderer.kinds.delivery import engine_annotations
from renderer.kinds.rebalance_spec import RebalanceSpec
from renderer.kinds.soft_taint_objects import Job
from renderer.kinds.soft_taint_spec import FOLDER, SoftTaint
from renderer.kinds.soft_taint_workload import Workload
from renderer.model import Manifest, Origin
from renderer.releases.descheduler_operator import DEVIATION, STATIC, Schema
from renderer.softtaint.config import Bounds, Config, Prometheus, encode

_MEASURED = "CPUMemoryCombined"
_OWN = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Token and CA that every pod has."""


def requests(
    spec: RebalanceSpec, taint: SoftTaint, at: Origin, site: Site, policy: str, known: Sequence[Schema] = ()
) -> Iterator[Request]:
    """The job's objects and all that is wrong with them; `at` is the policy's spec.

    `known` are the schemas of the descheduler operator on OpenShift.  Where the operator's own tainter does the work
    nothing is rendered here: its switch is a field of the `KubeDescheduler`.
    """
    place = at.below("softTaint")
    yield from soft_taint_findings.always(spec, taint, at, site)
    refused = list(soft_taint_handover.two_tainters(spec, taint, place, known))
    yield from refused
    if refused or soft_taint_handover.operator_taints(taint, known):
        return
    yield from soft_taint_findings.of_the_job(spec, taint, place, site, _bounds(spec))
    yield from _job(spec, taint, at, site, policy, known)


def _job(
    spec: RebalanceSpec, taint: SoftTaint, at: Origin, site: Site, policy: str, known: Sequence[Schema]
) -> Iterator[Request]:
    measures = taint.mode != "RemoveOnly"
    if measures and site.monitoring.url is None:
        if spec.metric is None:  # else the descheduler's own check says so
            yield soft_taint_findings.no_prometheus(site)
        return
    schedule = soft_taint_schedule.schedule(taint.every_seconds)
    if taint.run_as == "CronJob" and schedule is None:
        yield soft_taint_findings.no_schedule(taint, at.below("softTaint", "every"))
        return
    if measures and spec.balances_load and spec.metric is None:
        yield soft_taint_findings.other_measure(spec, at.below("softTaint"), site, known)
        yield from rule_objects.requests(groups=[upstream_policy.GROUP], site=site, policy=policy)
    workload = _workload(taint, site, schedule or "")
    job = Job(
        config=encode(_config(spec, taint, site, workload)),
        url=site.monitoring.url if measures else None,
        workload=workload,
        openshift=site.platform == "openshift",
        views_monitoring=measures and site.platform == "openshift" and site.monitoring.token_secret is None,
        admission=taint.admission == "policy",
        rule_labels=site.monitoring.rule_labels,
    )
    for name, body in soft_taint_objects.objects(job, partial(engine_annotations, site)):
        yield Manifest(FOLDER, name, body, policy)


def _workload(taint: SoftTaint, site: Site, schedule: str) -> Workload:
    monitoring, deployment, measures = site.monitoring, taint.run_as == "Deployment", taint.mode != "RemoveOnly"
    return Workload(
        image=taint.image,
        run_as=taint.run_as,
        every=taint.every_seconds,
        schedule=schedule,
        ca=_certificates(site) if measures and _encrypted(site) else None,
        token=monitoring.token_secret[1] if measures and monitoring.token_secret else None,
        fixed_user=site.platform == "kubernetes",
        monitor=deployment and monitoring.rules == "object",
        annotated=deployment and monitoring.rules == "file",
    )


def _encrypted(site: Site) -> bool:
    return (site.monitoring.url or "").startswith("https://")


def _certificates(site: Site) -> tuple[str, str] | None:
    """The ConfigMap with the CA: the Cluster's, or that of OpenShift's services; none: what the pod has."""
    if site.monitoring.ca_config_map is not None:
        return site.monitoring.ca_config_map
    return soft_taint_objects.service_ca() if site.platform == "openshift" and _inside(site) else None


def _inside(site: Site) -> bool:
    """Whether the address is that of a Service."""
    host = (urlsplit(site.monitoring.url or "").hostname or "").rstrip(".")
    return host.endswith((".svc", ".svc.cluster.local"))


def _config(spec: RebalanceSpec, taint: SoftTaint, site: Site, workload: Workload) -> Config:
    """`RemoveOnly` knows no Prometheus: none is asked."""
    url = site.monitoring.url
    measures = taint.mode != "RemoveOnly" and url is not None
    return Config(
        format=1,
        mode=taint.mode,
        run_as=taint.run_as,
        every_seconds=taint.every_seconds,
        query=upstream_policy.query(spec.metric or _MEASURED) if measures else None,
        thresholds=_bounds(spec),
        hysteresis_points=taint.hysteresis_points,
        max_tainted_percent=taint.max_tainted_percent,
        missing_sample=taint.missing_sample,
        stale_after_seconds=taint.stale_seconds,
        node_selector=dict([upstream_policy.SCHEDULABLE.split("=")]),
        prometheus=_prometheus(url, site, workload) if measures and url is not None else None,
    )


def _prometheus(url: str, site: Site, workload: Workload) -> Prometheus:
    return Prometheus(url=url, ca_file=_ca_file(site, workload), token_file=_token_file(site))


def _bounds(spec: RebalanceSpec) -> Bounds:
    """The thresholds of the descheduler's own policy."""
    if spec.moves_machines and spec.deviation is not None:
        low, high = DEVIATION[spec.deviation]
        return Bounds(low=low, high=high, deviation=True)
    low, high = STATIC[spec.static or "Medium"]
    return Bounds(low=low, high=high, deviation=False)


def _ca_file(site: Site, workload: Workload) -> str | None:
    """On Kubernetes the cluster's own CA where the Cluster names none, as the descheduler has it."""
    if not _encrypted(site):
        return None
    if workload.ca is not None:
        return soft_taint_workload.ca_path(workload.ca[1])
    return f"{_OWN}/ca.crt" if site.platform == "kubernetes" else None


def _token_file(site: Site) -> str | None:
    """The pod's own token is never sent unencrypted: whoever reads it there could write taints."""
    if site.monitoring.token_secret is not None:
        return soft_taint_workload.token_path()
    return f"{_OWN}/token" if _encrypted(site) else None
