"""`rebalancing`: what the descheduler does, whether it helps, and when it cannot work."""

from __future__ import annotations

from textwrap import indent

from renderer.catalog.load_aware import CPU, CPU_AVERAGE, MEMORY, MEMORY_AVERAGE, vector_of_workers
from renderer.catalog.model import Group, Rule, Source, alert
from renderer.catalog.nodes import by_name
from renderer.softtaint.config import NAME as TAINTER
from renderer.softtaint.taints import EFFECT, TAINTS, VALUE

TAINTED = "kubevirt_policy:node_overutilized_taint:bool"
LOAD_TAINTS = "kubevirt_policy:node_load_taints:count"
FLIPS = "kubevirt_policy:node_taint_flips:changes1h"
EVICTIONS = "kubevirt_policy:evictions:increase1h"
MIGRATIONS = "kubevirt_policy:migrations_in_flight:count"
TAINTER_AGE = "kubevirt_policy:softtaint_last_good_pass:age_seconds"
SPREAD = "kubevirt_policy:node_load_spread:ratio"
MANY_FLIPS = 6
"""Three times on and off within an hour: more than load that is worth a migration changes."""
WIDE = 0.2
"""A node this far above the average is over-utilized by every preset but the widest two."""
LONG_AGO = 1200
"""Seconds; with the ten minutes that the alert waits, half an hour without a good pass."""


def group(source: Source) -> Group:
    """The records, then the alerts that read them."""
    del source
    records = [*_moves(), *_taints(), *_spread(), _tainter_age()]
    return Group("kubevirt-policy.rebalancing", "1m", [*records, _not_converging(), _flapping(), _tainter_failing()])


def _moves() -> list[Rule]:
    """The descheduler's counter has had its `_total` only since 0.34."""
    increase = "increase(descheduler_pods_evicted_total[1h]) or increase(descheduler_pods_evicted[1h])"
    phases = "\nor\n".join(
        f'label_replace(max(kubevirt_vmi_migrations_in_{phase}_phase), "phase", "{phase}", "", "")'
        for phase in ("pending", "scheduling", "running")
    )
    return [
        Rule(f"sum by (result) ({increase})", record=EVICTIONS),
        Rule(phases, record=MIGRATIONS),
    ]


def _taints() -> list[Rule]:
    """Each counts once, however many kube-state-metrics tell of it; ours have that value and effect."""
    found = [
        f'max by (node, key) (\n  kube_node_spec_taint{{key="{key}", value="{VALUE}", effect="{EFFECT}"}} > 0\n)'
        for key in TAINTS
    ]
    none = "\nor on (node)\nkube_node_info * 0"
    both = indent("\nor\n".join(found), "  ")
    return [
        Rule(by_name(found[0] + none), record=TAINTED),
        Rule(by_name(f"sum by (node) (\n{both}\n){none}"), record=LOAD_TAINTS),
        Rule(f"avg({TAINTED})", record="kubevirt_policy:nodes_tainted:ratio"),
        Rule(f"changes({LOAD_TAINTS}[1h])", record=FLIPS),
    ]


def _spread() -> list[Rule]:
    """How far the busiest worker is above the average of the workers."""
    dimensions = (("cpu", CPU, CPU_AVERAGE), ("memory", MEMORY, MEMORY_AVERAGE))
    parts = [
        f"label_replace(\n  max(\n{indent(vector_of_workers(vector), '    ')}\n  ) - {average},\n"
        f'  "dimension", "{name}", "", ""\n)'
        for name, vector, average in dimensions
    ]
    return [Rule("\nor\n".join(parts), record=SPREAD)]


def _tainter_age() -> Rule:
    """Since the newest sign of a good pass; a CronJob without any is as old as it is.

    OpenShift's kube-state-metrics drops all `kube_…_created` (cluster-monitoring-operator
    assets/kube-state-metrics/deployment.yaml), hence the alert looks for a missing age as well.
    """
    signs = (
        "kubevirt_policy_softtaint_last_good_pass_timestamp_seconds",
        f'kube_cronjob_status_last_successful_time{{namespace="{TAINTER}"}}',
        f'kube_cronjob_created{{namespace="{TAINTER}"}}',
    )
    newest = indent("\nor\n".join(signs), "  ")
    return Rule(f"time() - max(\n{newest}\n)", record=TAINTER_AGE)


def _not_converging() -> Rule:
    """Where KubeVirt tells of its migrations, there has to have been one: a descheduler that only simulates counts its
    evictions as well (v0.36.0 pkg/descheduler/evictions/evictions.go:581)."""
    return alert(
        "KubeVirtPolicyRebalancingNotConverging",
        f'min_over_time({SPREAD}[1h]) > {WIDE}\nand on ()\nsum({EVICTIONS}{{result="success"}}) > 0\n'
        f"unless on ()\nsum(max_over_time({MIGRATIONS}[1h])) == 0",
        wait="30m",
        summary="Virtual machines are moved, and the {{ $labels.dimension }} load does not even out.",
        description=(
            "The busiest node has stayed {{ $value | humanizePercentage }} or more above the average "
            "{{ $labels.dimension }} load for over an hour, while the descheduler evicted. "
            "Each migration costs, and these did not help."
        ),
    )


def _flapping() -> Rule:
    return alert(
        "KubeVirtPolicyTaintsFlapping",
        f"{FLIPS} >= {MANY_FLIPS}",
        wait="10m",
        summary="The load taints of {{ $labels.instance }} come and go.",
        description=(
            "The load taints of {{ $labels.instance }} changed {{ $value }} times within an hour. The load is "
            "near a threshold: widen the band of the soft-tainter or the thresholds."
        ),
    )


def _tainter_failing() -> Rule:
    """Late is what is later than three of the job's own periods: it may run once an hour.

    A Deployment whose metrics are not there is judged by its pods alone: on OpenShift another Prometheus has them.
    """
    here = f'namespace="{TAINTER}"'
    before = f"kube_cronjob_status_last_schedule_time{{{here}}} or kube_cronjob_created{{{here}}}"
    period = f"(max(kube_cronjob_next_schedule_time{{{here}}}) - max({before}))"
    late = f"{TAINTER_AGE} > {LONG_AGO}\nunless on ()\n{TAINTER_AGE} <= 3 * {period}"
    never = f"group(kube_cronjob_info{{{here}}})\nunless on ()\n{TAINTER_AGE}"
    down = f"max(kube_deployment_spec_replicas{{{here}}}) > 0\nunless on ()\n"
    down += f"max(kube_deployment_status_replicas_available{{{here}}}) > 0"
    cases = "\nor on ()\n".join(f"(\n{indent(case, '  ')}\n)" for case in (late, never, down))
    return alert(
        "KubeVirtPolicySoftTainterFailing",
        cases,
        wait="10m",
        summary="The soft-tainter has not finished a pass for half an hour.",
        description=(
            "The load taints of the nodes are not kept up to date: new virtual machines go by taints that are old. "
            "The job's log says which step fails."
        ),
    )
