"""What is wrong with `softTaint` on a cluster: tainters beside ours, what a release lacks, figures that do nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from renderer.kinds import soft_taint_schedule, soft_taint_surroundings
from renderer.kinds.base import Site
from renderer.kinds.fields import listed
from renderer.kinds.rebalance_spec import LOAD_PROFILES, RebalanceSpec
from renderer.kinds.soft_taint_admission import SINCE
from renderer.kinds.soft_taint_spec import BESIDE_THE_MODE, SoftTaint
from renderer.kinds.upstream_policy import RECORDS
from renderer.model import Origin, Problem
from renderer.releases import descheduler
from renderer.releases.descheduler_operator import Schema, Tainter
from renderer.softtaint.config import NAME

_BUSY_NODES, _BUSY_SECONDS = 200, 300
_WHEREVER = "the operator deploys its own tainter wherever such a taint is left"


def always(spec: RebalanceSpec, taint: SoftTaint, at: Origin, site: Site) -> Iterator[Problem]:
    """Whoever writes the taints."""
    place = at.below("softTaint")
    if spec.mode == "Predictive" and taint.mode == "Enforce":
        message = "mode Predictive only simulates evictions, and softTaint Enforce really taints nodes"
        help = "Write softTaint mode: DryRun, or mode: Automatic."
        yield Problem("soft-taint/predictive", place.below("mode"), message, help)
    if not spec.balances_load and taint.mode != "RemoveOnly":
        message = f"none of {', '.join(spec.profiles)} looks at load: there are no thresholds to taint by"
        help = f"Add one of {', '.join(sorted(LOAD_PROFILES))}, or remove softTaint; RemoveOnly works without."
        yield Problem("soft-taint/no-load-profile", place.below("mode"), message, help)
    yield from soft_taint_surroundings.judge(spec, site, at)


def operator_taints(taint: SoftTaint, known: Sequence[Schema]) -> bool:
    """Whether the operator's tainter does the work, by its switch, which later releases do not need and ignore."""
    return taint.mode == "Enforce" and bool(known) and known[0].tainter is Tainter.SWITCH


def two_tainters(spec: RebalanceSpec, taint: SoftTaint, at: Origin, known: Sequence[Schema]) -> Iterator[Problem]:
    """Releases with a tainter of their own, now or after the upgrade."""
    if not known or known[-1].tainter is Tainter.NONE:
        return
    now, last = known[0], known[-1]
    place = at.below("mode")
    if now.tainter is Tainter.NONE:
        yield from _before_hand_over(taint, last, place)
    elif taint.mode == "RemoveOnly":
        if spec.mode == "Automatic":
            message = f"{now.title} removes these taints itself in mode Automatic: {_WHEREVER}"
            help = "Remove softTaint. RemoveOnly is for mode Predictive, in which the operator leaves them as they are."
            yield Problem("soft-taint/two-tainters", place, message, help)
    elif operator_taints(taint, known):
        yield from _switch(spec, now, at)
    elif now.tainter is Tainter.SWITCH:
        message = f"{now.title} has a tainter of its own, which knows no dry run; ours beside it would be the second"
        yield Problem("soft-taint/two-tainters", place, message, "Write mode: Enforce, or remove softTaint.")
    else:
        runs = "runs its own tainter with this profile" if spec.moves_machines else "has a tainter of its own"
        message = f"{now.title} {runs}: {_WHEREVER}, and the two would undo each other's work"
        help = "Remove softTaint: the operator's tainter comes with profile KubeVirtRelieveAndMigrate."
        yield Problem("soft-taint/two-tainters", place, message, help)


def _before_hand_over(taint: SoftTaint, coming: Schema, at: Origin) -> Iterator[Problem]:
    if taint.mode != "RemoveOnly":
        message = f"{coming.title}, which the cluster is upgraded to, has a tainter of its own: two would run"
        help = "Write mode: RemoveOnly first, wait for a pass, and upgrade then."
        yield Problem("soft-taint/two-tainters", at, message, help)


def _switch(spec: RebalanceSpec, schema: Schema, at: Origin) -> Iterator[Problem]:
    """What the switch needs, and what it cannot be told (release-4.18 target_config_reconciler.go:1257)."""
    if not spec.moves_machines:
        message = (
            f"devEnableSoftTainter of {schema.title} needs profile KubeVirtRelieveAndMigrate: "
            "without it the operator scales the descheduler to zero"
        )
        yield Problem("soft-taint/unsupported", at.below("mode"), message, "Add the profile, or remove softTaint.")
    elif spec.metric is None:
        message = (
            f"devEnableSoftTainter of {schema.title} needs a utilization: without one its tainter fails at each pass"
        )
        yield Problem("soft-taint/unsupported", at.below("mode"), message, "Add utilization:.")
    for name in (name for name in BESIDE_THE_MODE if name in _given(at)):
        message = f"{name} has no effect: the tainter of {schema.title} is switched on here, and has no such setting"
        yield Problem("soft-taint/inert", at.below(name), message, "Remove it for these clusters.")


def _given(at: Origin) -> list[str]:
    """The keys of the block as they stand in the policy."""
    return list(at.document.data["spec"]["softTaint"])


def of_the_job(taint: SoftTaint, at: Origin, site: Site) -> Iterator[Problem]:
    """What is only about our own job."""
    yield from _admission(taint, at, site)
    yield from _image(taint, at.below("image"))
    yield from _times(taint, at, site)
    yield from _cap(taint, at.below("maxTaintedPercent"), site)
    yield from _mounted(site)


def _admission(taint: SoftTaint, at: Origin, site: Site) -> Iterator[Problem]:
    version, first = site.kubernetes, ".".join(map(str, SINCE))
    serves = version is not None and (version.major, version.minor) >= SINCE
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
        f"a CronJob cannot run every {taint.every}: cron knows minutes that divide an hour, hours that divide a day"
    )
    times = soft_taint_schedule.nearest(taint.every_seconds)
    help = f"The nearest that it knows: {listed(times)}. runAs: Deployment knows every time."
    return Problem("soft-taint/schedule", at, message, help)


def _times(taint: SoftTaint, at: Origin, site: Site) -> Iterator[Problem]:
    nodes = site.facts.nodes if site.facts else 0
    if taint.run_as == "CronJob" and nodes > _BUSY_NODES and taint.every_seconds < _BUSY_SECONDS:
        message = (
            f"a new pod every {taint.every} lists {nodes} nodes each time, and its start takes longer than its work"
        )
        yield Problem("soft-taint/frequent-jobs", at.below("every"), message, "Use runAs: Deployment, or every: 5m.")
    if taint.stale_seconds < 2 * taint.every_seconds:
        message = (
            f"staleAfter {taint.stale_after} is less than two passes of {taint.every}: "
            "one that fails takes all taints away"
        )
        help = "Give it the time of several passes, as in 10m with every: 2m."
        yield Problem("soft-taint/stale-after", at.below("staleAfter"), message, help)


def _cap(taint: SoftTaint, at: Origin, site: Site) -> Iterator[Problem]:
    """As the job counts it: rounded down, and never all nodes."""
    nodes = site.facts.nodes if site.facts else None
    if nodes is None and taint.max_tainted_percent > 0:
        return
    if nodes is not None and min(nodes * taint.max_tainted_percent // 100, nodes - 1) > 0:
        return
    of = f"of {nodes} node{'s' if nodes != 1 else ''}" if nodes is not None else "of the nodes"
    message = f"{taint.max_tainted_percent} percent {of} allows not one node with the taint overutilized"
    yield Problem("soft-taint/cap", at, message, "Raise it, or remove softTaint there.")


def _mounted(site: Site) -> Iterator[Problem]:
    """A pod mounts from its own namespace only."""
    at, secret, certificate = site.origin.below("spec", "monitoring"), *_mounts(site)
    if secret is not None and secret[0] != NAME:
        message = f"the soft-tainter cannot read Secret {secret[1]} in namespace {secret[0]}: it runs in {NAME}"
        help = (
            f"Put the Secret into {NAME} and write namespace: {NAME}; the descheduler reads it there as well. "
            f"Or keep a copy there, of the same name, with key {descheduler.TOKEN_KEY}."
        )
        yield Problem("soft-taint/token-secret", at.below("tokenSecret"), message, help)
    if certificate is not None and (site.monitoring.url or "").startswith("https://"):
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


def other_measure(spec: RebalanceSpec, at: Origin) -> Problem:
    """The tainter has to measure something that the descheduler does not."""
    names = " and ".join(name for name in spec.profiles if name in LOAD_PROFILES)
    message = (
        f"{names} goes by what pods request here, and the soft-tainter by {RECORDS['CPUMemoryCombined']}: "
        "the descheduler may call a node under-utilized that is tainted, and a taint on all of those ends its evictions"
    )
    help = "Watch kubevirt_policy:nodes_tainted:ratio and the evictions; give utilization: where the release takes it."
    return Problem("soft-taint/other-measure", at.below("mode"), message, help)
