"""`load-aware`: how loaded each node is, by use, by pressure stall information and by both.

The mathematics is that of the descheduler operator's own rules (cluster-kube-descheduler-operator
bindata/assets/kube-descheduler/prometheusrule.yaml), so that a threshold means the same on every platform.
"""

from __future__ import annotations

from textwrap import indent

from renderer.catalog.model import Group, Rule, Source, alert, duration
from renderer.catalog.nodes import addresses, by_name, by_node, named, ratio

CPU = "kubevirt_policy:node_cpu_utilization:ratio"
MEMORY = "kubevirt_policy:node_memory_utilization:ratio"
CPU_STALL = "kubevirt_policy:node_cpu_pressure_stall:ratio"
MEMORY_STALL = "kubevirt_policy:node_memory_pressure_stall:ratio"
IO_STALL = "kubevirt_policy:node_io_pressure_stall:ratio"
CPU_COUNTED = "kubevirt_policy:node_cpu_pressure_counted:ratio"
MEMORY_COUNTED = "kubevirt_policy:node_memory_pressure_counted:ratio"
CPU_AVERAGE = "kubevirt_policy:workers_cpu_utilization:avg"
MEMORY_AVERAGE = "kubevirt_policy:workers_memory_utilization:avg"
AVERAGES = {
    CPU_AVERAGE: CPU,
    "kubevirt_policy:workers_cpu_pressure:avg": CPU_COUNTED,
    MEMORY_AVERAGE: MEMORY,
    "kubevirt_policy:workers_memory_pressure:avg": MEMORY_COUNTED,
}
"""What is averaged over the workers: the dimensions of the combined score."""
CPU_PRESSURE = "kubevirt_policy:node_cpu_pressure:ratio"
GATED = "kubevirt_policy:node_cpu_pressure_by_utilization:ratio"

BUSY = 0.7
"""Pressure counts above this utilization only: below it, it comes from pods at their own CPU limit
(kubernetes/enhancements#5062)."""
FULL = 0.8
"""With the workers as busy as this on average, utilization says little, and pressure is looked at instead."""
AMPLIFIED = 3
"""How much the distance from the average is amplified: `k3` in the operator's record names."""


def group(source: Source) -> Group:
    """The records, in an order in which each finds those that it reads, and the alerts on what they lack."""
    mapping = [addresses()] if source.node_names == "address" else []
    records = [*mapping, *_utilization(source), *_stalls(source), *_averages(), *_pressures(source), *_scores()]
    return Group(
        "kubevirt-policy.load-aware", duration(source.scrape_interval), [*records, _no_pressure(), _no_metrics()]
    )


def _utilization(source: Source) -> list[Rule]:
    window = source.window
    # No CPU idles faster than time runs: a rate far above 1 is a counter that went back a little, taken for a reset.
    idle = f'1 - avg without (cpu, mode) (rate(node_cpu_seconds_total{{mode="idle"}}[{window}]) < 1.5)'
    cores = f'rate(container_cpu_usage_seconds_total{{id="/", %s}}[{window}])', "machine_cpu_cores{%s} > 0"
    free = f"""\
1 -
  avg_over_time(node_memory_MemAvailable_bytes[{window}])
  / (avg_over_time(node_memory_MemTotal_bytes[{window}]) > 0)"""
    working = 'container_memory_working_set_bytes{id="/", %s}', "machine_memory_bytes{%s} > 0"
    return [
        Rule(ratio(by_node(idle, source), *_of_kubelets(*cores, source)), record=CPU),
        Rule(ratio(by_node(free, source), *_of_kubelets(*working, source)), record=MEMORY),
    ]


def _of_kubelets(used: str, whole: str, source: Source) -> tuple[str, str]:
    """A share by the label `node`, which prometheus-operator adds to a kubelet's series; else by `instance`."""

    def share(label: str, matcher: str) -> str:
        return f"max by ({label}) ({used % matcher})\n/ on ({label})\nmax by ({label}) ({whole % matcher})"

    return by_name(share("node", 'node!=""')), by_node(share("instance", 'node=""'), source)


def _stalls(source: Source) -> list[Rule]:
    """What the kernel measures; nothing for nodes without pressure stall information."""
    counters = {CPU_STALL: "cpu", MEMORY_STALL: "memory", IO_STALL: "io"}
    return [
        Rule(
            ratio(by_node(f"rate(node_pressure_{name}_waiting_seconds_total[{source.window}])", source)), record=record
        )
        for record, name in counters.items()
    ]


def _averages() -> list[Rule]:
    """Pressure that counts, on the nodes that measure it, and what is average among the workers."""
    return [
        Rule(_gated(CPU_STALL, CPU, base=CPU_STALL), record=CPU_COUNTED),
        Rule(_gated(MEMORY_STALL, MEMORY, base=MEMORY_STALL), record=MEMORY_COUNTED),
        *(Rule(workers_average(vector), record=record) for record, vector in AVERAGES.items()),
    ]


def workers_average(vector: str) -> str:
    """Over the nodes that are not control plane alone; over all where that leaves none."""
    return f"avg(\n{indent(vector_of_workers(vector), '  ')}\n)\nor\navg({vector})"


def vector_of_workers(vector: str) -> str:
    """A vector without the nodes that have a control-plane role and no worker role."""
    roles = [named(f"kube_node_role{{role{role}}}") for role in ('=~"control-plane|master"', '="worker"')]
    alone = indent("\nunless on (instance)\n".join(roles), "  ")
    return f"{vector}\nunless on (instance)\n(\n{alone}\n)"


def _pressures(source: Source) -> list[Rule]:
    """Pressure of every node; where the kernel does not measure it, the utilization of what is waited for."""
    waiting = f'avg without (cpu, mode) (rate(node_cpu_seconds_total{{mode="iowait"}}[{source.window}]) < 1.5)'
    return [
        Rule(f"{CPU_STALL} or on (instance) {CPU}", record=CPU_PRESSURE),
        Rule(f"{MEMORY_STALL} or on (instance) {MEMORY}", record="kubevirt_policy:node_memory_pressure:ratio"),
        Rule(ratio(IO_STALL, by_node(waiting, source), CPU), record="kubevirt_policy:node_io_pressure:ratio"),
        Rule(_gated(CPU_PRESSURE, CPU, base=CPU), record=GATED),
    ]


def _gated(pressure: str, utilization: str, *, base: str) -> str:
    """The pressure of busy nodes, and 0 for all others of `base`."""
    return f"({pressure} and on (instance) {utilization} > {BUSY})\nor on (instance)\n{base} * 0"


def _scores() -> list[Rule]:
    combined = f"({CPU} and on () {CPU_AVERAGE} < {FULL})\nor on (instance)\n{GATED}"
    return [
        Rule(combined, record="kubevirt_policy:node_cpu_combined:ratio"),
        Rule(_distance(), record="kubevirt_policy:node_cpu_memory_combined:ratio"),
    ]


def _distance() -> str:
    """How far above the average a node is in four dimensions; one that it does not measure adds nothing."""
    terms = [
        f"(\n  clamp_min({vector} - on () group_left () {average}, 0) ^ 2\n  or on (instance) {CPU} * 0\n)"
        for average, vector in AVERAGES.items()
    ]
    joined = indent("\n+ on (instance)\n".join(terms), "    ")
    return f"clamp_max(\n  {AMPLIFIED} * sqrt(\n{joined}\n  ),\n  1\n) >= 0"


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
    """CPU and memory both: half a load would compare a node with others by another measure."""
    ready = by_name('kube_node_status_condition{condition="Ready", status="true"} == 1')
    return alert(
        "KubeVirtPolicyNodeMetricsMissing",
        f"{ready}\nunless on (instance)\n(\n  {CPU} and on (instance) {MEMORY}\n)",
        wait="10m",
        summary="The load of {{ $labels.instance }} is not known.",
        description=(
            "Neither node-exporter nor the kubelet gives both the CPU and the memory utilization of "
            "{{ $labels.instance }}. The descheduler gives up its whole round when a single node has no sample."
        ),
    )
