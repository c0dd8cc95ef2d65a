"""Documents to typed policies, or every error of each document at its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

import msgspec

from renderer.findings import SEVERITIES
from renderer.kinds import KINDS, Cluster, ClusterFacts, Policy
from renderer.kinds.base import API_VERSION, check_selector
from renderer.mistakes import choices, has_null, mistakes
from renderer.model import Document, Origin, Problem, Severity, Tree
from renderer.values import Value, field
from renderer.words import did_you_mean, shown

T = TypeVar("T")


class Decoded(Value, Generic[T], frozen=True, eq=False):
    """A typed document and its origin; equal only to itself.

    `refused` is a policy with an error of its own: it is selected like any other, and never applied.
    """

    value: T
    origin: Origin
    refused: bool = False


class Broken(Value, frozen=True):
    """What can be told of a document that could not be decoded; `None` where that cannot be read either."""

    name: str | None
    labels: dict[str, str] | None


_UNREAD = Broken(None, None)


class Fleet(Value, frozen=True):
    """All documents of a repository, by kind; `problems` are errors of single documents.

    The broken ones are no part of it, but they exist: what is missing only because of them is not said again.
    """

    clusters: list[Decoded[Cluster]] = field(default_factory=list)
    facts: list[Decoded[ClusterFacts]] = field(default_factory=list)
    policies: list[Decoded[Policy]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    broken_clusters: list[Broken] = field(default_factory=list)
    broken_facts: list[Broken] = field(default_factory=list)


def decode(documents: Iterable[Document], tree: Tree, *, whole: bool) -> Fleet:
    """The fleet that the documents describe; of those with one name the first, without those that are broken.

    Unless they are the `whole` of what there is, what is missing may be a cluster, or its facts.
    """
    fleet = Fleet()
    if not whole:
        fleet.broken_clusters.append(_UNREAD)
        fleet.broken_facts.append(_UNREAD)
    first: dict[tuple[str, str], Origin] = {}
    for document in documents:
        origin = Origin(document)
        value = _decoded(fleet, document, origin)
        if value is None:
            continue
        problems = list(value.check(origin, tree))
        fleet.problems.extend(problems)
        key = (type(value).__name__, value.metadata.name)
        if key in first:
            fleet.problems.append(_duplicate(key, origin, first[key]))
            continue
        first[key] = origin
        match value:
            case Cluster():
                fleet.clusters.append(Decoded(value, origin))
            case ClusterFacts():
                fleet.facts.append(Decoded(value, origin))
            case Policy():
                refused = value.guarded and any(SEVERITIES[problem.code] is Severity.ERROR for problem in problems)
                unclear = list(check_selector(value.spec.clusters, origin.below("spec", "clusters")))
                fleet.problems.extend(unclear)
                if not unclear:
                    fleet.policies.append(Decoded(value, origin, refused))
    return fleet


def _decoded(fleet: Fleet, document: Document, origin: Origin) -> Cluster | ClusterFacts | Policy | None:
    kind = document.data.get("kind")
    if document.data.get("apiVersion") != API_VERSION or not isinstance(kind, str) or kind not in KINDS:
        problems = list(_foreign(document.data, origin))
    elif has_null(document.data):  # to the models None is a key that was left out
        problems = mistakes(KINDS[kind], origin)
    else:
        try:
            return msgspec.convert(document.data, KINDS[kind])
        except msgspec.ValidationError as error:
            other = Problem("policy/value", origin, str(error), "Compare it with the kind's JSON Schema.")
            problems = mistakes(KINDS[kind], origin) or [other]
    fleet.problems.extend(problems)
    if problems:
        _keep_broken(fleet, document.data)
    return None


def _keep_broken(fleet: Fleet, data: dict[str, Any]) -> None:
    kind = data.get("kind")
    meant = get_close_matches(kind, KINDS, 1) if isinstance(kind, str) else []
    metadata = data.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name, labels = metadata.get("name"), metadata.get("labels", {})
    plain = isinstance(labels, dict) and all(isinstance(value, str) for value in labels.values())
    broken = Broken(name if isinstance(name, str) else None, labels if plain else None)
    if meant == ["Cluster"]:
        fleet.broken_clusters.append(broken)
    if meant == ["ClusterFacts"]:
        fleet.broken_facts.append(broken)


def _foreign(data: dict[str, Any], origin: Origin) -> Iterator[Problem]:
    """What is wrong with a document that is none of ours; a ConfigMap may hold the numbers of a policy."""
    api_version, kind = data.get("apiVersion"), data.get("kind")
    if (api_version, kind) == ("v1", "ConfigMap"):
        return
    for name, value, known in (("apiVersion", api_version, [API_VERSION]), ("kind", kind, list(KINDS))):
        if name not in data:
            near = next((key for key in data if key.lower() == name.lower()), None)
            help = f"Write {name} for {near}." if near else f"Add {name}: {choices(known)}."
            yield Problem("policy/missing-key", origin, f"{name} is missing", help)
        elif not isinstance(value, str):
            yield Problem("policy/type", origin.below(name), f"{name} must be a text", f"Write {choices(known)}.")
        elif value not in known:
            near = did_you_mean(value, known)
            help = near or f"Write {choices(known)}; keep other manifests in another directory."
            yield Problem("policy/value", origin.below(name), f"{name} {shown(value)} is not known here", help)
            if not near:  # somebody else's API has kinds of its own
                return


def _duplicate(key: tuple[str, str], origin: Origin, first: Origin) -> Problem:
    place = first.below("metadata", "name").position
    message = f"{key[0]} {key[1]} is declared twice, first at {place.place}"
    return Problem("policy/duplicate-name", origin.below("metadata", "name"), message, "Rename or remove one of them.")
