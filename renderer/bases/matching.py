"""Which of the objects that a base gives out is the wanted one, and what to say where none is."""

from __future__ import annotations

from collections.abc import Sequence

from renderer.bases.values import BaseProblem, Subject, Wanted
from renderer.model import Origin
from renderer.words import listed

_LOCAL = "config.kubernetes.io/local-config"
_SHOWN = 5


def choose(subjects: Sequence[Subject], wanted: Wanted, creating: Sequence[BaseProblem]) -> Subject | list[BaseProblem]:
    """The one object that is wanted, or why there is none.

    `creating` is what could have created it without our seeing it; it is reported only where nothing was found.
    """
    given_out = [subject for subject in subjects if not _kept_local(subject)]
    same = [subject for subject in given_out if _same_object(subject, wanted)]
    exact = [subject for subject in same if subject.body.get("apiVersion") == wanted.api_version]
    if len(same) > 1:
        return [_conflict(same)]
    if exact:
        other = next((subject for subject in given_out if subject.body["kind"] != wanted.kind), None)
        return exact[0] if other is None else [_both(exact[0], other)]
    near = [subject for subject in given_out if subject.body["kind"] == wanted.kind]
    if creating and not near:
        return list(creating)
    return [_no_match(wanted, same, near or given_out), *([] if same else creating)]


def _kept_local(subject: Subject) -> bool:
    """kustomize drops objects that are marked as local configuration."""
    annotations = subject.body["metadata"].get("annotations") or {}
    return bool(annotations.get(_LOCAL, "false") != "false")


def _same_object(subject: Subject, wanted: Wanted) -> bool:
    metadata = subject.body["metadata"]
    if metadata.get("namespace") not in (None, "", wanted.namespace):
        return False
    found: tuple[object, ...] = (_group(subject.body.get("apiVersion")), subject.body.get("kind"), metadata["name"])
    return found == (_group(wanted.api_version), wanted.kind, wanted.name)


def _group(api_version: object) -> str:
    return str(api_version).rpartition("/")[0]


def _conflict(same: Sequence[Subject]) -> BaseProblem:
    first, second = same[0], same[1]
    message = f"{first.identity.kind} {first.identity.name} is declared here and in {first.origin.position.place}"
    help = "Keep one of the two: the object exists once in a cluster."
    return BaseProblem("base/conflict", message, help, second.origin)


def _both(wanted: Subject, other: Subject) -> BaseProblem:
    """HyperConverged owns the KubeVirt object: what is declared of it is reverted, with an alert."""
    message = (
        f"{other.identity.kind} {other.identity.name} is declared beside {wanted.identity.kind} in "
        f"{wanted.origin.position.place}: HyperConverged reverts a KubeVirt object, and raises KubeVirtCRModified"
    )
    return BaseProblem("base/conflict", message, "Keep one of the two.", other.origin)


def _no_match(wanted: Wanted, same: Sequence[Subject], others: Sequence[Subject]) -> BaseProblem:
    if same:
        found = same[0].body.get("apiVersion")
        message = f"{wanted} is declared as {found} in {same[0].origin.position.place}, not as {wanted.api_version}"
        return BaseProblem("base/no-match", message, f"Set operatorResource.apiVersion to {found}.")
    if not others:
        help = "Point to the directory that declares it, or correct operatorResource."
        return BaseProblem("base/no-match", f"the base declares no {wanted}, and no other operator object", help)
    shown = "; ".join(_described(subject) for subject in others[:_SHOWN])
    return BaseProblem("base/no-match", f"the base declares no {wanted}, but {shown}", _help(wanted, others))


def _described(subject: Subject) -> str:
    metadata = subject.body["metadata"]
    namespace = f"in namespace {metadata['namespace']}" if metadata.get("namespace") else "without a namespace"
    text = f"{subject.body['kind']} {metadata['name']} {namespace} ({subject.origin.position.place}"
    return text + (f", changed by {_causes(subject.renamed)})" if subject.renamed else ")")


def _causes(renamed: Sequence[Origin]) -> str:
    return listed(f"{origin.path[0]} in {origin.position.place}" for origin in renamed)


def _help(wanted: Wanted, others: Sequence[Subject]) -> str:
    first = others[0]
    if first.body["kind"] != wanted.kind:
        return f"Point to the directory that declares the {wanted.kind}, or correct versions and operatorResource."
    if first.renamed:
        return f"The operator knows its object by name and namespace: leave {wanted.kind} out of that step."
    return "Correct operatorResource.name and operatorResource.namespace, or the base."
