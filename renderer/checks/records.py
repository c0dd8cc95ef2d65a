"""Records that read records: what is reached from a query, and what spreads from one to those that read it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from renderer.decode import Decoded
from renderer.kinds import Policy
from renderer.kinds.rebalance import RebalancePolicy
from renderer.kinds.rebalance_spec import Query, RebalanceSpec
from renderer.kinds.recording_rules import RecordingRules
from renderer.kinds.rule_spec import Rule
from renderer.model import Origin

Reads: TypeAlias = Mapping[str, AbstractSet[str]]
"""The names that the expressions of a record read, by its name."""


def own(policies: Sequence[Decoded[Policy]]) -> Iterator[tuple[Rule, Origin]]:
    """The recording rules of a cluster's own policies, with their places."""
    for policy in policies:
        if isinstance(policy.value, RecordingRules):
            for _, rule, at in policy.value.rules(policy.origin):
                if rule.record is not None:
                    yield rule, at


def queries(policies: Sequence[Decoded[Policy]]) -> Iterator[tuple[RebalanceSpec, Query, Origin]]:
    """The queries of a cluster's own, with what asks for them and their places."""
    for policy in policies:
        if isinstance(policy.value, RebalancePolicy) and isinstance(policy.value.spec.metric, Query):
            yield policy.value.spec, policy.value.spec.metric, policy.origin.below("spec", "utilization", "query")


def reached(names: Iterable[str], read_by: Callable[[str], AbstractSet[str] | None]) -> Reads:
    """These names, those that their records read, and so on, each with what it reads; in the order of being reached."""
    found: dict[str, AbstractSet[str]] = {}
    pending = deque(sorted(names))
    while pending:
        name = pending.popleft()
        if name not in found:
            found[name] = read_by(name) or frozenset()
            pending.extend(sorted(found[name] - found.keys()))
    return found


def spread(known: Iterable[str], reads: Reads, holds: Callable[[str, AbstractSet[str]], bool]) -> AbstractSet[str]:
    """The names for which something holds: those that are known, and those for which it follows from what they read.

    `holds` is asked of a name with the names for which it holds already, again for each of these that it reads.
    """
    found = set(known)
    readers: dict[str, list[str]] = {}
    for name, names in reads.items():
        for one in names:
            readers.setdefault(one, []).append(name)
    found |= {name for name in reads if holds(name, found)}
    pending = deque(found)
    while pending:
        for reader in readers.get(pending.popleft(), ()):
            if reader not in found and holds(reader, found):
                found.add(reader)
                pending.append(reader)
    return found
