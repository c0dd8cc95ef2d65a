"""Clusters that are rendered alike: fleets are large, and their differences are few."""

from __future__ import annotations

from collections.abc import Iterable

from renderer.decode import Decoded, Fleet
from renderer.kinds import Cluster, Policy
from renderer.kinds.base import Facts
from renderer.selection import Selection
from renderer.values import Value


class Shape(Value, frozen=True):
    """Clusters that differ in nothing but name and labels: what is rendered for the first holds for all."""

    members: list[Decoded[Cluster]]
    facts: list[Facts | None]
    policies: list[Decoded[Policy]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.value.metadata.name for member in self.members)


def shapes(fleet: Fleet, selection: Selection) -> Iterable[Shape]:
    """The clusters of a fleet, those together that are rendered alike."""
    facts = {item.value.metadata.name: item for item in fleet.facts}
    found: dict[tuple[object, ...], Shape] = {}
    for cluster in fleet.clusters:
        name = cluster.value.metadata.name
        measured, policies = facts.get(name), selection.winners[name]
        key = (
            repr(cluster.origin.document.data["spec"]),
            repr(measured.origin.document.data["spec"]) if measured else "",
            tuple(policies),
            name if cluster.value.spec.operator_resource.base else "",  # the base names our folder, and ours the base
        )
        shape = found.setdefault(key, Shape([], [], policies))
        shape.members.append(cluster)
        shape.facts.append(measured.value.facts(measured.origin) if measured else None)
    return found.values()
