"""Which policy wins on which cluster, by selectors and priority."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from difflib import get_close_matches

from renderer.decode import Decoded, Fleet
from renderer.kinds import Policy
from renderer.kinds.fields import shown
from renderer.model import Origin, Problem

Winners = dict[str, list[Decoded[Policy]]]
"""For each cluster, by name, the policies that apply to it, in order of kind and name."""


def select(fleet: Fleet) -> tuple[Winners, list[tuple[Problem, tuple[str, ...]]]]:
    """The winners of each cluster, and what is wrong with the selection, with the clusters concerned."""
    candidates: dict[str, list[Decoded[Policy]]] = {item.value.metadata.name: [] for item in fleet.clusters}
    problems: list[tuple[Problem, tuple[str, ...]]] = [(problem, ()) for problem in _unknown_facts(fleet)]
    for policy in sorted(fleet.policies, key=_order):
        selected = _selected(policy, fleet)
        for name in selected:
            candidates[name].append(policy)
        problems.extend((problem, ()) for problem in _check_selector(policy, candidates.keys(), selected))
    winners = {name: list(_winning(policies)) for name, policies in candidates.items()}
    problems.extend(_ties(candidates))
    problems.extend((problem, ()) for problem in _never_wins(candidates, winners))
    return winners, problems


def _order(policy: Decoded[Policy]) -> tuple[str, str]:
    return type(policy.value).__name__, policy.value.metadata.name


def _selected(policy: Decoded[Policy], fleet: Fleet) -> list[str]:
    selector = policy.value.spec.clusters
    return [
        item.value.metadata.name
        for item in fleet.clusters
        if selector.matches(item.value.metadata.name, item.value.metadata.labels)
    ]


def _check_selector(policy: Decoded[Policy], clusters: object, selected: list[str]) -> Iterator[Problem]:
    selector, at = policy.value.spec.clusters, policy.origin.below("spec", "clusters")
    known = list(clusters) if isinstance(clusters, type({}.keys())) else []
    unknown = [index for index, name in enumerate(selector.names or []) if name not in known]
    for index in unknown:
        name = (selector.names or [])[index]
        yield Problem("select/unknown-name", at.below("names", index), f"no cluster is called {shown(name)}", _near(name, known))
    yield from _check_requirements(policy, at)
    if not selected and not unknown:
        message = f"{policy.value.metadata.name} selects no cluster"
        yield Problem("select/no-match", at, message, "Change the selector, or remove the policy.")


def _check_requirements(policy: Decoded[Policy], at: Origin) -> Iterator[Problem]:
    for index, requirement in enumerate(policy.value.spec.clusters.match_expressions):
        needs = requirement.operator in ("In", "NotIn")
        if needs != bool(requirement.values):
            place = at.below("matchExpressions", index)
            message = f"operator {requirement.operator} {'needs values' if needs else 'takes no values'}"
            yield Problem("policy/value", place, message, "Add values: with a list." if needs else "Remove values.")


def _unknown_facts(fleet: Fleet) -> Iterator[Problem]:
    known = [item.value.metadata.name for item in fleet.clusters]
    names = set(known)
    for item in fleet.facts:
        name = item.value.metadata.name
        if name not in names:
            at = item.origin.below("metadata", "name")
            yield Problem("select/unknown-name", at, f"no cluster is called {shown(name)}", _near(name, known))


def _near(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"Did you mean {near[0]}?" if near else "Declare it in a Cluster document, or remove the name."


def _winning(policies: list[Decoded[Policy]]) -> Iterator[Decoded[Policy]]:
    highest: dict[str, Decoded[Policy]] = {}
    for policy in policies:
        kind = type(policy.value).__name__
        if not policy.value.exclusive:
            yield policy
        elif kind not in highest or policy.value.spec.priority > highest[kind].value.spec.priority:
            highest[kind] = policy
    yield from highest.values()


def _ties(candidates: dict[str, list[Decoded[Policy]]]) -> Iterator[tuple[Problem, tuple[str, ...]]]:
    """One problem for each set of policies that tie, with all the clusters where they do."""
    tied: dict[tuple[int, ...], list[str]] = defaultdict(list)
    by_id: dict[int, Decoded[Policy]] = {}
    for name, policies in candidates.items():
        groups: dict[tuple[str, int], list[Decoded[Policy]]] = defaultdict(list)
        for policy in policies:
            if policy.value.exclusive:
                groups[type(policy.value).__name__, policy.value.spec.priority].append(policy)
        highest = {kind: max(priority for other, priority in groups if other == kind) for kind, _ in groups}
        for (kind, priority), group in groups.items():
            if len(group) > 1 and priority == highest[kind]:
                by_id.update((id(policy), policy) for policy in group)
                tied[tuple(id(policy) for policy in group)].append(name)
    for ids, clusters in tied.items():
        yield _tie([by_id[one] for one in ids]), tuple(sorted(clusters))


def _tie(group: list[Decoded[Policy]]) -> Problem:
    first, *rest = group
    others = ", ".join(
        f"{other.value.metadata.name} ({position.file}:{position.line})"
        for other in rest
        for position in (other.origin.below("metadata", "name").position,)
    )
    message = f"{first.value.metadata.name} and {others} both have priority {first.value.spec.priority}: none wins"
    return Problem("select/tie", _priority(first), message, "Give one of them a higher spec.priority, or select other clusters.")


def _priority(policy: Decoded[Policy]) -> Origin:
    has_priority = "priority" in policy.origin.document.data["spec"]
    return policy.origin.below("spec", "priority") if has_priority else policy.origin.below("metadata", "name")


def _never_wins(candidates: dict[str, list[Decoded[Policy]]], winners: Winners) -> Iterator[Problem]:
    beaten: dict[int, dict[str, Decoded[Policy]]] = defaultdict(dict)
    policies: dict[int, Decoded[Policy]] = {}
    winning: set[int] = set()
    for name, found in candidates.items():
        chosen = {type(policy.value).__name__: policy for policy in winners[name] if policy.value.exclusive}
        winning.update(id(policy) for policy in winners[name])
        for policy in found:
            winner = chosen.get(type(policy.value).__name__, policy)
            policies[id(policy)] = policy
            if winner is not policy and winner.value.spec.priority > policy.value.spec.priority:
                beaten[id(policy)][winner.value.metadata.name] = winner
    for one, over in beaten.items():
        if one not in winning:
            names = ", ".join(
                f"{name} (priority {policy.value.spec.priority})" for name, policy in sorted(over.items())
            )
            policy = policies[one]
            message = f"{policy.value.metadata.name} wins on no cluster: {names} has a higher priority wherever it is selected"
            yield Problem("select/never-wins", _priority(policy), message, "Raise its priority, or remove it.")
