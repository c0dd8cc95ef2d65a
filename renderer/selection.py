"""Which policy wins on which cluster, by selectors and priority."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from renderer.decode import Decoded, Fleet
from renderer.kinds import Policy
from renderer.kinds.base import ClusterSelector
from renderer.kinds.fields import shown
from renderer.model import Origin, Problem
from renderer.values import Value, field

_COMPARISONS = 50_000  # of two names each: a second or two


class Selection(Value, frozen=True):
    """For each cluster, by name, the policies that apply to it; and what is wrong, with the clusters concerned."""

    winners: dict[str, list[Decoded[Policy]]]
    problems: list[tuple[Problem, tuple[str, ...]]] = field(default_factory=list)


class _Contest(Value, frozen=True):
    """The policies of one kind that select one cluster, in order of name; one of them can win."""

    cluster: str
    policies: list[Decoded[Policy]]

    @property
    def first(self) -> list[Decoded[Policy]]:
        """Those with the highest priority: more than one is a tie."""
        highest = max(policy.value.spec.priority for policy in self.policies)
        return [policy for policy in self.policies if policy.value.spec.priority == highest]


def select(fleet: Fleet) -> Selection:
    """The winners of each cluster, in order of kind and name."""
    names = dict.fromkeys(item.value.metadata.name for item in fleet.clusters)
    out = Selection({name: [] for name in names}, [(problem, ()) for problem in _unknown_facts(fleet, names)])
    contests: dict[tuple[str, str], list[Decoded[Policy]]] = defaultdict(list)
    for policy in sorted(fleet.policies, key=lambda policy: (_kind(policy), policy.value.metadata.name)):
        selected = _selected(policy, fleet)
        out.problems.extend((problem, ()) for problem in _check_selector(policy, names, selected))
        for name in selected:
            if policy.value.exclusive:
                contests[_kind(policy), name].append(policy)
            else:
                out.winners[name].append(policy)
    decided = [_Contest(name, policies) for (_, name), policies in contests.items()]
    for contest in decided:
        out.winners[contest.cluster].append(contest.first[0])
    out.problems.extend(_ties(decided))
    out.problems.extend((problem, ()) for problem in _never_wins(decided))
    return out


def _kind(policy: Decoded[Policy]) -> str:
    return type(policy.value).__name__


def _selected(policy: Decoded[Policy], fleet: Fleet) -> list[str]:
    selector = policy.value.spec.clusters
    metadata = [item.value.metadata for item in fleet.clusters]
    if selector.names is not None:
        names = set(selector.names)
        metadata = [one for one in metadata if one.name in names]
    return [one.name for one in metadata if selector.matches(one.labels)]


def _check_selector(policy: Decoded[Policy], names: Collection[str], selected: Sequence[str]) -> Iterator[Problem]:
    selector, at = policy.value.spec.clusters, policy.origin.below("spec", "clusters")
    unknown = [(index, name) for index, name in enumerate(selector.names or ()) if name not in names]
    for index, name in unknown:
        yield Problem(
            "select/unknown-name",
            at.below("names", index),
            f"no cluster is called {shown(name)}",
            _near(name, names, of=len(unknown)),
        )
    broken = list(_broken(selector, at))
    yield from broken
    if not selected and not unknown and not broken:
        message = f"{policy.value.metadata.name} selects no cluster"
        yield Problem("select/no-match", at, message, "Change the selector, or remove the policy.")


def _broken(selector: ClusterSelector, at: Origin) -> Iterator[Problem]:
    for index, requirement in enumerate(selector.match_expressions):
        needs = requirement.operator in ("In", "NotIn")
        if needs != bool(requirement.values):
            message = f"operator {requirement.operator} {'needs values' if needs else 'takes no values'}"
            help = "Add values: with a list." if needs else "Remove values."
            yield Problem("policy/value", at.below("matchExpressions", index), message, help)


def _unknown_facts(fleet: Fleet, names: Collection[str]) -> Iterator[Problem]:
    unknown = [item for item in fleet.facts if item.value.metadata.name not in names]
    for item in unknown:
        name, place = item.value.metadata.name, item.origin.below("metadata", "name")
        help = _near(name, names, of=len(unknown))
        yield Problem("select/unknown-name", place, f"no cluster is called {shown(name)}", help)


def _near(name: str, known: Collection[str], *, of: int) -> str:
    """What to do about one `of` so many unknown names; comparing many with many would take minutes."""
    near = get_close_matches(name, known, 1) if of * len(known) <= _COMPARISONS else []
    return f"Did you mean {near[0]}?" if near else "Declare it in a Cluster document, or remove the name."


def _ties(contests: Sequence[_Contest]) -> Iterator[tuple[Problem, tuple[str, ...]]]:
    """One problem for each set of policies that tie, with all the clusters where they do."""
    tied: dict[tuple[Decoded[Policy], ...], list[str]] = defaultdict(list)
    for contest in contests:
        if len(contest.first) > 1:
            tied[tuple(contest.first)].append(contest.cluster)
    for (first, *rest), clusters in tied.items():
        *more, last = [first.value.metadata.name, *map(_named, rest)]
        all_ = "both" if len(more) == 1 else "all"
        message = f"{', '.join(more)} and {last} {all_} have priority {first.value.spec.priority}: none wins"
        help = "Give one of them a higher spec.priority, or select other clusters."
        yield Problem("select/tie", _priority(first), message, help), tuple(clusters)


def _named(policy: Decoded[Policy]) -> str:
    position = policy.origin.below("metadata", "name").position
    return f"{policy.value.metadata.name} ({position.file}:{position.line})"


def _priority(policy: Decoded[Policy]) -> Origin:
    """Where the priority stands, or the name of a policy that leaves it out."""
    given = "priority" in policy.origin.document.data["spec"]
    return policy.origin.below("spec", "priority") if given else policy.origin.below("metadata", "name")


def _never_wins(contests: Sequence[_Contest]) -> Iterator[Problem]:
    winning = {policy for contest in contests for policy in contest.first}
    beaten: dict[Decoded[Policy], dict[str, Decoded[Policy]]] = defaultdict(dict)
    for contest in contests:
        for policy in contest.policies:
            if policy not in winning:
                beaten[policy].update((winner.value.metadata.name, winner) for winner in contest.first)
    for policy, winners in beaten.items():
        over = ", ".join(
            f"{_named(winner)} with priority {winner.value.spec.priority}" for _, winner in sorted(winners.items())
        )
        message = f"{policy.value.metadata.name} wins on no cluster: everywhere it loses to {over}"
        yield Problem("select/never-wins", _priority(policy), message, "Raise its priority, or remove it.")
