"""A `RebalancePolicy` on Kubernetes: the upstream descheduler, and what its release would make of the policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from renderer.kinds import (
    rebalance_background,
    rebalance_evictions,
    rebalance_exclusion,
    rebalance_surroundings,
    rule_objects,
    upstream_descheduler,
    upstream_policy,
)
from renderer.kinds.base import Request, Site
from renderer.kinds.delivery import engine_annotations
from renderer.kinds.rebalance_kept import kept, read_groups
from renderer.kinds.rebalance_spec import RebalanceSpec
from renderer.kinds.upstream_descheduler import Workload
from renderer.kinds.upstream_policy import Source
from renderer.model import Manifest, Origin, Problem
from renderer.releases import descheduler
from renderer.releases.descheduler import RELEASES, Release
from renderer.releases.descheduler_operator import EXCLUSIVE
from renderer.releases.versions import parse

_PLAIN = (
    "Use plain http inside the cluster: a Service or port of Prometheus without TLS, such as the operator's own "
    "http://prometheus-operated.monitoring.svc:9090."
)


def requests(spec: RebalanceSpec, at: Origin, site: Site, policy: str) -> Iterator[Request]:
    """The descheduler's objects, the recording rules that it asks for, and everything that is wrong."""
    releases = [RELEASES[minor] for minor in site.descheduler.upstream]
    if not releases:
        yield from _no_version(site)
        return
    yield from _judge(spec, releases, site, at)
    if spec.on_removal == "Keep":
        yield _kept(spec, at.below("onRemoval"), site)
    source = Source(site.monitoring.url, site.monitoring.token_secret) if spec.metric and site.monitoring.url else None
    yield from _objects(spec, descheduler.common(releases), source, site, policy)
    if spec.soft_taint is not None:
        from renderer.kinds import soft_taint  # late: most fleets have no tainter

        yield from soft_taint.requests(spec, spec.soft_taint, at, site, policy)


def _objects(
    spec: RebalanceSpec, release: Release, source: Source | None, site: Site, policy: str
) -> Iterator[Request]:
    never = tuple(dict.fromkeys((descheduler.NAMESPACE, site.operator.namespace)))
    body = upstream_policy.policy(spec, release, source, never)
    workload = Workload(_image_version(site, release), spec.interval_seconds, dry_run=spec.mode == "Predictive")
    query = upstream_policy.query(spec.metric) if spec.metric else ""
    wanted = engine_annotations(site, keep=spec.on_removal == "Keep", text=query)
    for name, found in upstream_descheduler.objects(body, release, workload, source, wanted):
        yield Manifest("descheduler", name, found, policy)
    if isinstance(spec.metric, str):
        yield from rule_objects.requests(groups=[upstream_policy.GROUP], site=site, policy=policy)


def _kept(spec: RebalanceSpec, at: Origin, site: Site) -> Problem:
    groups = [upstream_policy.GROUP] if isinstance(spec.metric, str) else read_groups(spec, site)
    delete = f"delete it afterwards: kubectl delete deployment descheduler -n {descheduler.NAMESPACE}"
    return kept("the descheduler", groups, delete, at)


def _image_version(site: Site, release: Release) -> str:
    """The patch release that the cluster states, or the newest known of its minor."""
    versions = site.origin.document.data["spec"]["versions"]
    stated = parse(versions.get("descheduler", ""))
    if stated is None:
        return release.newest
    if stated.patch is not None:
        return str(stated)
    return RELEASES[stated.name].newest if stated.name in RELEASES else release.newest


def _no_version(site: Site) -> Iterator[Problem]:
    if "descheduler" not in site.origin.document.data["spec"]["versions"]:
        message = "a rebalance policy needs the release of the descheduler, and versions has no descheduler"
        help = f'Add the one to run, as in descheduler: "{descheduler.MINORS[-1]}".'
        yield Problem("rebalance/no-release", site.origin.below("spec", "versions"), message, help)


def _judge(spec: RebalanceSpec, releases: Sequence[Release], site: Site, at: Origin) -> Iterator[Problem]:
    yield from _conflicts(spec, at.below("profiles"))
    yield from rebalance_exclusion.on_upstream(spec, site, at)
    for release in releases:
        yield from _judge_release(spec, release, at)
    yield from rebalance_background.on_upstream(spec, releases, site, at)
    yield from rebalance_surroundings.judge_upstream(spec, site, at)
    if spec.metric is not None and all(release.prometheus for release in releases):
        yield from _prometheus(releases, site)
    if spec.migration_cooldown is not None:
        message = "the upstream descheduler has no migration cooldown: it is a part of OpenShift's build"
        yield Problem("rebalance/unsupported", at.below("migrationCooldown"), message, "Remove it for these clusters.")
    if spec.pressure_stall.enable:
        message = "pressure metrics are turned on outside Kubernetes: no object does it"
        help = (
            "Boot the nodes with the kernel argument psi=1 (GRUB_CMDLINE_LINUX, or the node image) and see that "
            "/proc/pressure exists, then remove pressureStall for these clusters."
        )
        yield Problem("rebalance/pressure-stall", at.below("pressureStall", "enable"), message, help)


def _conflicts(spec: RebalanceSpec, at: Origin) -> Iterator[Problem]:
    for index, name in enumerate(spec.profiles):
        before = spec.profiles[:index]
        if name in before:
            message = f"profile {name} stands twice: its evictions would be made twice in each cycle"
            yield Problem("rebalance/exclusive-profiles", at.below(index), message, "Remove one of them.")
        for other in dict.fromkeys(before):
            if frozenset((name, other)) in EXCLUSIVE:
                message = f"profiles {other} and {name} exclude each other: one evicts what the other has just placed"
                yield Problem("rebalance/exclusive-profiles", at.below(index), message, "Keep one of them.")


def _judge_release(spec: RebalanceSpec, release: Release, at: Origin) -> Iterator[Problem]:
    if spec.metric is not None and not release.prometheus:
        message = (
            f"{release.title} cannot ask Prometheus: it drops metricsProviders in silence, "
            "and ends at the plugin arguments that it does not know"
        )
        help = "Use descheduler 0.33 or newer, or profiles that go by the requests of pods, without utilization."
        yield Problem("rebalance/unsupported", at.below("utilization"), message, help)
    yield from rebalance_evictions.on_upstream(spec, release, at.below("evictions"))


def _prometheus(releases: Sequence[Release], site: Site) -> Iterator[Problem]:
    """Whether the descheduler can reach the cluster's Prometheus (v0.36.0 pkg/descheduler/client/client.go:125)."""
    at, monitoring = site.origin.below("spec", "monitoring"), site.monitoring
    if monitoring.url is None:
        message = "the policy reads load from Prometheus, and monitoring.url is missing"
        help = "Add its address, as in http://prometheus-operated.monitoring.svc:9090."
        yield Problem("rebalance/prometheus", at, message, help)
        return
    yield from _tls(monitoring.url, site, at)
    for release in releases:
        if release.needs_token and monitoring.token_secret is None:
            message = (
                f"{release.title} ends at its start when it is to use its own pod's token: "
                "its Prometheus client is made too late"
            )
            help = f"Use 0.36, or give monitoring.tokenSecret: a Secret with key {descheduler.TOKEN_KEY}."
            yield Problem("rebalance/known-bad", at, message, help)
    if monitoring.token_secret is not None and monitoring.token_secret[0] == descheduler.NAMESPACE:
        message = f"the descheduler watches every Secret of the namespace of its token, here {descheduler.NAMESPACE}"
        help = "Put the token in a namespace that holds nothing else: the rendered Role is for that one only."
        yield Problem("rebalance/secret-namespace", at.below("tokenSecret"), message, help)


def _tls(url: str, site: Site, at: Origin) -> Iterator[Problem]:
    refused = list(_refused_tls(url, site, at))
    yield from refused
    if not refused and urlsplit(url).scheme == "https":
        message = (
            "the descheduler trusts the cluster's own CA only: a certificate of any other, public ones included, fails"
        )
        yield Problem("rebalance/tls", at.below("url"), message, f"Make sure that it is signed by that CA. {_PLAIN}")


def _refused_tls(url: str, site: Site, at: Origin) -> Iterator[Problem]:
    """What the descheduler's TLS code can never take."""
    parts = urlsplit(url)
    if parts.scheme != "https":
        return
    name = parts.netloc.rpartition("@")[2]  # a password is told by itself, and not repeated
    if ":" in name.rpartition("]")[2]:
        message = (
            f"https://{name} can never work: the descheduler compares the certificate with the name {name}, "
            "port included"
        )
        help = f"{_PLAIN} With https it has to listen on port 443, which the address then leaves out."
        yield Problem("rebalance/prometheus", at.below("url"), message, help)
    if site.monitoring.ca_config_map is not None:
        message = (
            "the descheduler trusts the cluster's own CA only: caConfigMap does not reach it, every query would fail"
        )
        help = (
            f"{_PLAIN} Or have the certificate signed by the cluster's own CA, the one in every pod's "
            "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt, and remove caConfigMap."
        )
        yield Problem("rebalance/prometheus", at.below("caConfigMap"), message, help)
