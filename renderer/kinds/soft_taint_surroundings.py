"""`softTaint` against other manifests of the repository: who else writes these taints, or takes them for something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from renderer.kinds import rebalance_surroundings
from renderer.kinds.base import Site
from renderer.kinds.rebalance_spec import RebalanceSpec
from renderer.model import Body, Origin, Problem
from renderer.softtaint.taints import TAINTS

_LISTS = ("taints", "startupTaints", "registerWithTaints")
"""Where Node, MachineSet, MachineDeployment, NodePool, KubeadmConfig and KubeletConfiguration declare taints."""
_FLAGS = ("ignore-taint", "startup-taint")
"""Of the cluster-autoscaler: a node with such a taint counts as not ready (kubernetes/autoscaler PR 6132)."""


_IN_TEXT = re.compile(
    rf"--(?P<flag>{'|'.join(_FLAGS)})[=\\\s'\"]+(?P<key>{'|'.join(map(re.escape, TAINTS))})(?![-\w./])"
)
"""As a shell reads it: the key after a sign of equality or blanks, quotes, the end of a line that goes on."""


def judge(spec: RebalanceSpec, site: Site, at: Origin) -> Iterator[Problem]:
    """Everything that the manifests of the policy say about our taints."""
    place = at.below("manifests")
    karpenter: list[str] = []
    for body, origin in rebalance_surroundings.find(spec, site):
        where = f"{body.get('kind', 'an object')} in {origin.position.place}"
        for key in _declared(body):
            message = f"{where} declares the taint {key} as well: it is put back as often as it is removed"
            yield Problem("soft-taint/declared-elsewhere", place, message, "Remove it there: one owner for a taint.")
        for flag, key in dict.fromkeys(_flagged(body)):
            message = f"{where} gives the autoscaler --{flag} for {key}: loaded nodes would count as not ready"
            help = "Use --status-taint, which leaves such nodes ready."
            yield Problem("soft-taint/autoscaler-flags", place, message, help)
        if str(body.get("apiVersion", "")).partition("/")[0].startswith("karpenter."):
            karpenter.append(where)
    if karpenter:
        message = (
            f"{karpenter[0]} is Karpenter's, which takes a soft taint for a hard one at first: "
            "it may start nodes instead of filling those that have one"
        )
        help = "Watch the number of nodes, begin with mode: DryRun, or leave these clusters out."
        yield Problem("soft-taint/karpenter", place, message, help)


def _declared(body: Body) -> list[str]:
    """Our keys in lists of taints, anywhere in an object but in tolerations, each once."""
    return list(dict.fromkeys(key for entry in _entries(body) if (key := _key(entry)) in TAINTS))


def _entries(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        for name, value in node.items():
            if name in _LISTS and isinstance(value, list):
                yield from value
            else:
                yield from _entries(value)
    elif isinstance(node, list):
        for item in node:
            yield from _entries(item)


def _key(entry: Any) -> str:
    return str(entry.get("key", "")) if isinstance(entry, dict) else ""


def _flagged(node: Any) -> Iterator[tuple[str, str]]:
    """Flags that concern our keys: anywhere in a text, as two items of a list, or as a value of Helm's `extraArgs`."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name in _FLAGS:
                yield from _concerned(name, value)
            yield from _flagged(value)
    elif isinstance(node, list):
        for item, after in zip_longest(node, node[1:]):
            if str(item).removeprefix("--") in _FLAGS:
                yield from _concerned(str(item).removeprefix("--"), after)
            yield from _flagged(item)
    elif isinstance(node, str) and "-taint" in node:
        for found in _IN_TEXT.finditer(node):
            yield found["flag"], found["key"]


def _concerned(flag: str, value: Any) -> Iterator[tuple[str, str]]:
    for given in value if isinstance(value, list) else [value]:
        key = str(given).partition("=")[0].partition(":")[0]
        if key in TAINTS:
            yield flag, key
