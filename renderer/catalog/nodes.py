"""Series of exporters to one sample for each node, named by the node."""

from __future__ import annotations

from textwrap import indent

from renderer.catalog.model import Rule, Source

ADDRESSES = "kubevirt_policy:node_address:info"
"""Only where `instance` is an address: 1 for each address and for each name of a node."""

_HOST = "[[]([^]]+)[]](:[0-9]+)?|([^][:]+)(:[0-9]+)?"
"""`10.0.0.1:9100`, `[fd00::1]:9100` or `node-a`: the host is the first or the third group."""


def addresses() -> Rule:
    """Which address belongs to which node; one node for each address, or the joins would fail as a whole."""
    expr = """\
topk by (address) (1,
  max by (address, node) (
    label_replace(kube_node_info, "address", "$1", "internal_ip", "(.+)")
    or
    label_replace(kube_node_info, "address", "$1", "node", "(.+)")
  )
)"""
    return Rule(expr, record=ADDRESSES)


def by_node(expr: str, source: Source) -> str:
    """The largest of a node's series, should it have several exporters."""
    if source.node_names == "name":
        return f"max by (instance) (\n{indent(expr, '  ')}\n)"
    joined = f"""\
label_replace(
{indent(expr, "  ")},
  "address", "$1$3", "instance", "{_HOST}"
)
* on (address) group_left (node) {ADDRESSES}"""
    return f"max by (instance) (\n{indent(named(joined), '  ')}\n)"


def named(expr: str) -> str:
    """Series with the node in `node`, such as those of the kubelet and of kube-state-metrics: the largest of each.

    Aggregated first: two that differ in `instance` alone would become one series, which is an error.
    """
    return f'label_replace(\n  max by (node) (\n{indent(expr, "    ")}\n  ),\n  "instance", "$1", "node", "(.+)"\n)'


def by_name(expr: str) -> str:
    """The same, with no other label than `instance`."""
    return f"max by (instance) (\n{indent(named(expr), '  ')}\n)"


def ratio(*choices: str) -> str:
    """For each node the first choice that has it, within 0…1; a NaN is no sample."""
    joined = indent("\nor on (instance)\n".join(choices), "  ")
    return f"clamp(\n{joined},\n  0, 1\n) >= 0"
