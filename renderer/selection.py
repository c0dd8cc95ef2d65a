"""Which policy wins on which cluster, by selectors and priority."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from renderer.decode import Decoded, Fleet
from renderer.kinds import Policy
from renderer.model import Origin, Problem
from renderer.values import Value, field
from renderer.words import did_you_mean, listed, shown

_COMPARISONS = 50_000  # of two names each: a second or two


class Selection(Value, frozen=True):
    """For each cluster, by name, the policies that apply to it; and what is wrong, with the clusters concerned."""

    winners: dict[str, list[Decoded[Policy]]]
    problems: list[tuple[Problem, tuple[str, ...]]] = field(default_factory=list)


class _Contest(Value, frozen=True):
    """The policies of one kind that select one cluster, in order of name; one of them can win.

    `first` are those with the highest priority: more than one is a tie.
    """

    cluster: str
    policies: list[Decoded[Policy]]
    first: list[Decoded[Policy]]

    @classmethod
    def of(cls, cluster: str, policies: list[Decoded[Policy]]) -> _Contest:
        priorities = [policy.value.spec.priority for policy in policies]
        highest = max(priorities)
        first = [policy for policy, priority in zip(policies, priorities, strict=True) if priority == highest]
        return cls(cluster, policies, first)


def select(fleet: Fleet) -> Selection:
    """The winners of each cluster, in order of kind and name."""
    known = _Known.of(fleet)
    out = Selection({name: [] for name in known.labels}, [(problem, ()) for problem in _unknown_facts(fleet, known)])
    contests: dict[tuple[str, str], list[Decoded[Policy]]] = defaultdict(list)
    unclear: set[Decoded[Policy]] = set()
    for policy in sorted(fleet.policies, key=lambda policy: (_kind(policy), policy.value.metadata.name)):
        selected = _selected(policy, known)
        problems = list(_check_selector(policy, known, selected))
        out.problems.extend((problem, ()) for problem in problems)
        if problems or known.incomplete:
            unclear.add(policy)
        for name in selected:
            if policy.value.exclusive:
                contests[_kind(policy), name].append(policy)
            elif known.can_apply(policy, name):
                out.winners[name].append(policy)
    decided = [_Contest.of(name, policies) for (_, name), policies in contests.items()]
    for contest in decided:
        if known.can_apply(contest.first[0], contest.cluster):
            out.winners[contest.cluster].append(contest.first[0])
    out.problems.extend(_ties(decided))
    out.problems.extend((problem, ()) for problem in _never_wins(decided, unclear))
    return out


class _Known(Value, frozen=True):
    """The clusters that exist, the broken ones among them, with their labels; and whose facts are broken.

    `unnamed` and `incomplete` say that the name, or the name or labels, of some cluster could not be read.
    """

    labels: dict[str, dict[str, str]]
    carrying: dict[tuple[str, str], list[str]]
    """The clusters that carry a label, in order; with many policies, trying every cluster for each takes longest."""
    broken_facts: set[str]
    measured: set[str]
    unnamed: bool
    incomplete: bool
    unnamed_facts: bool

    @classmethod
    def of(cls, fleet: Fleet) -> _Known:
        labels = {item.value.metadata.name: item.value.metadata.labels for item in fleet.clusters}
        for one in fleet.broken_clusters:
            if one.name is not None:
                labels.setdefault(one.name, one.labels or {})
        carrying: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, carried in labels.items():
            for label in carried.items():
                carrying[label].append(name)
        facts = fleet.broken_facts
        return cls(
            labels=labels,
            carrying=carrying,
            broken_facts={one.name for one in facts if one.name is not None},
            measured={item.value.metadata.name for item in fleet.facts},
            unnamed=any(one.name is None for one in fleet.broken_clusters),
            incomplete=any(one.name is None or one.labels is None for one in fleet.broken_clusters),
            unnamed_facts=any(one.name is None for one in facts),
        )

    def can_apply(self, policy: Decoded[Policy], cluster: str) -> bool:
        """Not one that was refused, nor one whose facts are there but broken."""
        if policy.refused:
            return False
        lost = cluster not in self.measured and (cluster in self.broken_facts or self.unnamed_facts)
        return not (policy.value.needs_facts and lost)


def _kind(policy: Decoded[Policy]) -> str:
    return type(policy.value).__name__


def _selected(policy: Decoded[Policy], known: _Known) -> list[str]:
    selector = policy.value.spec.clusters
    names: Collection[str] = known.labels
    if selector.match_labels:
        names = min((known.carrying.get(label, ()) for label in selector.match_labels.items()), key=len)
    if selector.names is not None:
        asked = set(selector.names)
        names = [name for name in names if name in asked]
    return [name for name in names if selector.matches(known.labels[name])]


def _check_selector(policy: Decoded[Policy], known: _Known, selected: Sequence[str]) -> Iterator[Problem]:
    selector, at = policy.value.spec.clusters, policy.origin.below("spec", "clusters")
    unknown = [(index, name) for index, name in enumerate(selector.names or ()) if name not in known.labels]
    for index, name in [] if known.unnamed else unknown:
        yield Problem(
            "select/unknown-name",
            at.below("names", index),
            f"no cluster is called {shown(name)}",
            _near(name, known.labels, of=len(unknown)),
        )
    if not selected and not unknown and not known.incomplete:
        message = f"{policy.value.metadata.name} selects no cluster"
        yield Problem("select/no-match", at, message, "Change the selector, or remove the policy.")


def _unknown_facts(fleet: Fleet, known: _Known) -> Iterator[Problem]:
    names = known.labels
    unknown = [item for item in fleet.facts if item.value.metadata.name not in names and not known.unnamed]
    for item in unknown:
        name, place = item.value.metadata.name, item.origin.below("metadata", "name")
        help = _near(name, names, of=len(unknown))
        yield Problem("select/unknown-name", place, f"no cluster is called {shown(name)}", help)


def _near(name: str, known: Collection[str], *, of: int) -> str:
    """What to do about one `of` so many unknown names; comparing many with many would take minutes."""
    near = did_you_mean(name, known) if of * len(known) <= _COMPARISONS else ""
    return near or "Declare it in a Cluster document, or remove the name."


def _ties(contests: Sequence[_Contest]) -> Iterator[tuple[Problem, tuple[str, ...]]]:
    """One problem for each set of policies that tie, with all the clusters where they do."""
    tied: dict[tuple[Decoded[Policy], ...], list[str]] = defaultdict(list)
    for contest in contests:
        if len(contest.first) > 1:
            tied[tuple(contest.first)].append(contest.cluster)
    for (first, *rest), clusters in tied.items():
        names = listed([first.value.metadata.name, *map(_named, rest)])
        all_ = "all" if rest[1:] else "both"
        message = f"{names} {all_} have priority {first.value.spec.priority}: none wins"
        help = "Give one of them a higher spec.priority, or select other clusters."
        yield Problem("select/tie", _priority(first), message, help), tuple(clusters)


def _named(policy: Decoded[Policy]) -> str:
    position = policy.origin.below("metadata", "name").position
    return f"{policy.value.metadata.name} ({position.place})"


def _priority(policy: Decoded[Policy]) -> Origin:
    """Where the priority stands, or the name of a policy that leaves it out."""
    given = "priority" in policy.origin.document.data["spec"]
    return policy.origin.below("spec", "priority") if given else policy.origin.below("metadata", "name")


def _never_wins(contests: Sequence[_Contest], unclear: Collection[Decoded[Policy]]) -> Iterator[Problem]:
    """Without the policies of which it is unclear where they are for."""
    winning = {policy for contest in contests for policy in contest.first}
    beaten: dict[Decoded[Policy], dict[str, Decoded[Policy]]] = defaultdict(dict)
    for contest in contests:
        for policy in contest.policies:
            if policy not in winning and policy not in unclear:
                beaten[policy].update((winner.value.metadata.name, winner) for winner in contest.first)
    for policy, winners in beaten.items():
        over = listed(
            f"{_named(winner)} with priority {winner.value.spec.priority}" for _, winner in sorted(winners.items())
        )
        message = f"{policy.value.metadata.name} wins on no cluster: everywhere it loses to {over}"
        yield Problem("select/never-wins", _priority(policy), message, "Raise its priority, or remove it.")
