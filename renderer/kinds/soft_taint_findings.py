"""What is wrong with `softTaint` on a cluster by itself: figures, image, account, what the job cannot reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from renderer.kinds import soft_taint_schedule, soft_taint_surroundings
from renderer.kinds.base import Site
from renderer.kinds.rebalance_spec import LOAD_PROFILES, RebalanceSpec
from renderer.kinds.soft_taint_admission import SINCE
from renderer.kinds.soft_taint_spec import SoftTaint
from renderer.kinds.upstream_policy import RECORDS
from renderer.model import Origin, Problem
from renderer.releases import descheduler
from renderer.releases.descheduler_operator import Schema
from renderer.softtaint.config import NAME, Bounds
from renderer.words import listed

_BUSY_NODES, _BUSY_SECONDS = 200, 300


def always(spec: RebalanceSpec, taint: SoftTaint, at: Origin, site: Site) -> Iterator[Problem]:
    """Whoever writes the taints."""
    place = at.below("softTaint")
    if spec.mode == "Predictive" and taint.mode == "Enforce":
        message = "mode Predictive only simulates evictions, and softTaint Enforce really taints nodes"
        help = "Write softTaint mode: DryRun, or mode: Automatic."
        yield Problem("soft-taint/predictive", place.below("mode"), message, help)
    if not spec.balances_load and taint.mode != "RemoveOnly":
        message = f"no profile looks at load ({', '.join(spec.profiles)}): there are no thresholds to taint by"
        help = f"Add one of {', '.join(sorted(LOAD_PROFILES))}, or remove softTaint; RemoveOnly works without."
        yield Problem("soft-taint/no-load-profile", place.below("mode"), message, help)
    yield from soft_taint_surroundings.judge(spec, site, at)


def of_the_job(spec: RebalanceSpec, taint: SoftTaint, at: Origin, site: Site, bounds: Bounds) -> Iterator[Problem]:
    """What is only about our own job; `at` is the place of `taint`."""
    yield from _admission(taint, at, site)
    yield from _image(taint, at.below("image"))
    yield from _frequency(taint, at.below("every"), site)
    if taint.mode != "RemoveOnly":
        yield from _stale(taint, at.below("staleAfter"))
        yield from _hysteresis(taint, at.below("hysteresisPoints"), bounds)
        yield from _cap(taint, at.below("maxTaintedPercent"), site)
        yield from _mounted(spec, site)


def _admission(taint: SoftTaint, at: Origin, site: Site) -> Iterator[Problem]:
    version, first = site.kubernetes, ".".join(map(str, SINCE))
    serves = version is not None and version.release >= SINCE
    where = site.origin.below("spec", "versions")
    guard = "the ValidatingAdmissionPolicy that holds the job to its two taints"
    if taint.admission == "policy" and version is None:
        message = f"{guard} needs Kubernetes {first}, and versions has no kubernetes"
        help = "Add what kubectl version says of the server; OpenShift 4.N runs Kubernetes 1.(N+13)."
        yield Problem("soft-taint/no-admission", where, message, help)
    elif taint.admission == "policy" and not serves:
        message = f"Kubernetes {version} has no {guard.removeprefix('the ')}: it came with {first}"
        help = "Write admission: none in a policy for these clusters, if its account may patch whole nodes there."
        yield Problem("soft-taint/no-admission", at.below("admission"), message, help)
    elif taint.admission == "none" and serves:
        message = f"without {guard}, whoever gets the job's token can change nodes in every way"
        help = f"Remove admission: none; Kubernetes {version} has such policies."
        yield Problem("soft-taint/unguarded", at.below("admission"), message, help)


def _image(taint: SoftTaint, at: Origin) -> Iterator[Problem]:
    if "@" not in taint.image:
        message = "the image has no digest: what runs can change without a commit"
        yield Problem("soft-taint/unpinned-image", at, message, "Add it, as in name@sha256:….")


def no_schedule(taint: SoftTaint, at: Origin) -> Problem:
    """A time that cron has no words for."""
    message = (
        f"a CronJob cannot run every {taint.every}: "
        "it repeats after minutes that divide an hour, or hours that divide a day"
    )
    times = soft_taint_schedule.nearest(taint.every_seconds)
    help = f"Nearest to it: {listed(times)}. With runAs: Deployment any time is possible."
    return Problem("soft-taint/schedule", at, message, help)


def _frequency(taint: SoftTaint, at: Origin, site: Site) -> Iterator[Problem]:
    nodes = site.facts.nodes if site.facts else 0
    if taint.run_as == "CronJob" and nodes > _BUSY_NODES and taint.every_seconds < _BUSY_SECONDS:
        message = (
            f"a new pod every {taint.every} lists {nodes} nodes each time, and its start takes longer than its work"
        )
        yield Problem("soft-taint/frequent-jobs", at, message, "Use runAs: Deployment, or every: 5m.")


def _stale(taint: SoftTaint, at: Origin) -> Iterator[Problem]:
    if taint.stale_seconds < 2 * taint.every_seconds:
        message = (
            f"staleAfter {taint.stale_after} is less than two passes of {taint.every}: "
            "one that fails takes all taints away"
        )
        help = "Give it the time of several passes, as in 10m with every: 2m."
        yield Problem("soft-taint/stale-after", at, message, help)


def _hysteresis(taint: SoftTaint, at: Origin, bounds: Bounds) -> Iterator[Problem]:
    """As the job holds a taint: see `renderer.softtaint.plan`."""
    distance, given = (
        bounds.low + bounds.high if bounds.deviation else bounds.high - bounds.low,
        taint.hysteresis_points,
    )
    if given >= distance:
        size = "as much as" if given == distance else "more than"
        message = (
            f"hysteresisPoints {given} is {size} the distance between the thresholds, {distance} points: an "
            "over-utilized node keeps its taints until it is under-utilized, and no other node gets one"
        )
        help = f"Give it less than {distance}, as in {min(5, distance // 2)}, or thresholds that are farther apart."
        yield Problem("soft-taint/hysteresis", at, message, help)


def _cap(taint: SoftTaint, at: Origin, site: Site) -> Iterator[Problem]:
    """As the job counts it: rounded down, and never all nodes."""
    nodes = site.facts.nodes if site.facts else None
    if nodes is None and taint.max_tainted_percent > 0:
        return
    if nodes is not None and min(nodes * taint.max_tainted_percent // 100, nodes - 1) > 0:
        return
    which = f"no node of {nodes}" if nodes is not None else "no node"
    message = f"with maxTaintedPercent {taint.max_tainted_percent}, {which} can get the taint overutilized"
    yield Problem("soft-taint/cap", at, message, "Raise it, or remove softTaint there.")


def _mounted(spec: RebalanceSpec, site: Site) -> Iterator[Problem]:
    """A pod mounts from its own namespace only.

    Nobody is told where to put a CA that is refused: a descheduler on Kubernetes takes none for the same address.
    """
    at, secret, certificate = site.origin.below("spec", "monitoring"), *_mounts(site)
    if secret is not None and secret[0] != NAME:
        message = f"the soft-tainter cannot read Secret {secret[1]} in namespace {secret[0]}: it runs in {NAME}"
        help = (
            f"Keep a copy in {NAME}, of the same name, with key {descheduler.TOKEN_KEY}: its pods wait until it is "
            "there. It goes with that namespace, and the Secret itself stays where it is."
        )
        yield Problem("soft-taint/token-secret", at.below("tokenSecret"), message, help)
    refused = site.platform == "kubernetes" and spec.metric is not None
    if certificate is not None and not refused and (site.monitoring.url or "").startswith("https://"):
        message = f"the soft-tainter reads ConfigMap {certificate[0]} in its own namespace, {NAME}"
        help = f"See that it is there, with key {certificate[1]}: its pods wait until it is."
        yield Problem("soft-taint/ca-config-map", at.below("caConfigMap"), message, help)


def _mounts(site: Site) -> tuple[tuple[str, str] | None, tuple[str, str] | None]:
    return site.monitoring.token_secret, site.monitoring.ca_config_map


def no_prometheus(site: Site) -> Problem:
    """The job asks Prometheus also where the descheduler does not."""
    at = site.origin.below("spec", "monitoring")
    message = "the soft-tainter reads load from Prometheus, and monitoring.url is missing"
    return Problem("rebalance/prometheus", at, message, "Add its address, as in http://prometheus.monitoring.svc:9090.")


def other_measure(spec: RebalanceSpec, at: Origin, site: Site, known: Sequence[Schema]) -> Problem:
    """The tainter has to measure something that the descheduler does not."""
    profiles = [name for name in spec.profiles if name in LOAD_PROFILES]
    message = (
        f"load is what pods request here for {listed(profiles)}, and {RECORDS['CPUMemoryCombined']} for the "
        "soft-tainter: "
        "the descheduler may call a node under-utilized that is tainted, and a taint on all of those ends its evictions"
    )
    help = "Compare the two with mode: DryRun first"
    help += "; or give utilization: as well." if _takes_metrics(site, known) else ": this release takes no utilization."
    return Problem("soft-taint/other-measure", at.below("mode"), message, help)


def _takes_metrics(site: Site, known: Sequence[Schema]) -> bool:
    """Whether the descheduler can be told what to measure: on every release that the cluster runs or will run."""
    upstream = [descheduler.RELEASES.get(minor) for minor in site.descheduler.upstream]
    if any(release is not None and not release.prometheus for release in upstream):
        return False
    return all("devActualUtilizationProfile" in schema.customizations for schema in known)
