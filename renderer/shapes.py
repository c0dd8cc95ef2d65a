"""Clusters that are rendered alike: fleets are large, and their differences are few."""

from __future__ import annotations

from collections.abc import Iterable

from renderer.decode import Decoded, Fleet
from renderer.kinds import Cluster, Policy
from renderer.kinds.base import Facts
from renderer.selection import Selection
from renderer.values import Value


class Shape(Value, frozen=True):
    """Clusters that differ in nothing but name, labels and base: what policies ask for on the first holds for all."""

    members: list[Decoded[Cluster]]
    facts: list[Facts | None]
    policies: list[Decoded[Policy]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.value.metadata.name for member in self.members)

    def alike(self) -> Iterable[Shape]:
        """Those together whose overlay is the same: a base names our folder, and ours the base."""
        if self.members[0].value.spec.operator_resource.base is None:
            yield self
        else:
            for member, facts in zip(self.members, self.facts, strict=True):
                yield Shape([member], [facts], self.policies)


def shapes(fleet: Fleet, selection: Selection) -> Iterable[Shape]:
    """The clusters of a fleet, those together that are judged alike."""
    facts = {item.value.metadata.name: item for item in fleet.facts}
    found: dict[tuple[object, ...], Shape] = {}
    for cluster in fleet.clusters:
        name = cluster.value.metadata.name
        measured, policies = facts.get(name), selection.winners[name]
        key = (
            _spec(cluster, named=any(policy.value.reads_base for policy in policies)),
            repr(measured.origin.document.data["spec"]) if measured else "",
            tuple(policies),
        )
        shape = found.setdefault(key, Shape([], [], policies))
        shape.members.append(cluster)
        shape.facts.append(measured.value.facts(measured.origin) if measured else None)
    return found.values()


def _spec(cluster: Decoded[Cluster], *, named: bool) -> str:
    """The text of a spec; without the path of its base, unless `named`."""
    spec = cluster.origin.document.data["spec"]
    if named or cluster.value.spec.operator_resource.base is None:
        return repr(spec)
    return repr({**spec, "operatorResource": {**spec["operatorResource"], "base": ""}})
