"""`rebalancing`: what the descheduler does, whether it helps, and when it cannot work."""

from __future__ import annotations

from textwrap import indent

from renderer.catalog.load_aware import CPU, CPU_AVERAGE, CPU_STALL, MEMORY, MEMORY_AVERAGE, vector_of_workers
from renderer.catalog.model import Group, Rule, Source, alert
from renderer.catalog.nodes import by_name

OVERUTILIZED = "nodeutilization.descheduler.openshift.io/overutilized"
"""The taint of the operator's soft-tainter, and of ours (cluster-kube-descheduler-operator
pkg/softtainter/softtainter.go:44)."""

TAINTED = "kubevirt_policy:node_overutilized_taint:bool"
FLIPS = "kubevirt_policy:node_taint_flips:changes1h"
EVICTIONS = "kubevirt_policy:evictions:increase1h"
SPREAD = "kubevirt_policy:node_load_spread:ratio"
MANY_FLIPS = 6
"""Three times on and off within an hour: more than load that is worth a migration changes."""
WIDE = 0.2
"""A node this far above the average is over-utilized by every preset but the widest two."""


def group(source: Source) -> Group:
    """The records, then the alerts that read them."""
    del source
    rules = [*_moves(), *_taints(), *_spread(), _no_pressure(), _no_metrics(), _not_converging(), _flapping()]
    return Group("kubevirt-policy.rebalancing", "1m", rules)


def _moves() -> list[Rule]:
    """The descheduler's counter has had its `_total` only since 0.34."""
    increase = "increase(descheduler_pods_evicted_total[1h]) or increase(descheduler_pods_evicted[1h])"
    phases = "\nor\n".join(
        f'label_replace(max(kubevirt_vmi_migrations_in_{phase}_phase), "phase", "{phase}", "", "")'
        for phase in ("pending", "scheduling", "running")
    )
    return [
        Rule(f"sum by (result) ({increase})", record=EVICTIONS),
        Rule(phases, record="kubevirt_policy:migrations_in_flight:count"),
    ]


def _taints() -> list[Rule]:
    taint = f'kube_node_spec_taint{{key="{OVERUTILIZED}", effect="PreferNoSchedule"}}'
    tainted = by_name(f"({taint} > 0)\nor on (node)\nkube_node_info * 0")
    return [
        Rule(tainted, record=TAINTED),
        Rule(f"avg({TAINTED})", record="kubevirt_policy:nodes_tainted:ratio"),
        Rule(f"changes({TAINTED}[1h])", record=FLIPS),
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


def _no_pressure() -> Rule:
    return alert(
        "KubeVirtPolicyPressureMetricsMissing",
        f"{CPU} unless on (instance) {CPU_STALL}",
        wait="15m",
        summary="{{ $labels.instance }} reports no pressure stall information.",
        description=(
            "Load by pressure falls back to utilization for {{ $labels.instance }}, so that it is not compared with "
            "the other nodes by the same measure. If every node is listed, the collector is off or too old; if some "
            "are, their kernels were started without psi=1."
        ),
    )


def _no_metrics() -> Rule:
    ready = by_name('kube_node_status_condition{condition="Ready", status="true"} == 1')
    expr = f"{ready}\nunless on (instance)\n{CPU}"
    return alert(
        "KubeVirtPolicyNodeMetricsMissing",
        expr,
        wait="10m",
        summary="The load of {{ $labels.instance }} is not known, and rebalancing stops for the whole cluster.",
        description=(
            "Neither node-exporter nor the kubelet gives the utilization of {{ $labels.instance }}. The descheduler "
            "gives up its whole round when a single node has no sample."
        ),
    )


def _not_converging() -> Rule:
    return alert(
        "KubeVirtPolicyRebalancingNotConverging",
        f'min_over_time({SPREAD}[1h]) > {WIDE}\nand on ()\nsum({EVICTIONS}{{result="success"}}) > 0',
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
        summary="The load taint of {{ $labels.instance }} comes and goes.",
        description=(
            "The over-utilized taint of {{ $labels.instance }} changed {{ $value }} times within an hour. The load is "
            "near a threshold: widen the band of the soft-tainter or the thresholds."
        ),
    )
