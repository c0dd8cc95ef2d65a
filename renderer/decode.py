"""Documents to typed policies, or every error of each document at its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from renderer.findings import SEVERITIES
from renderer.kinds import KINDS, Cluster, ClusterFacts, Policy
from renderer.kinds.base import API_VERSION, check_selector
from renderer.kinds.fields import EXPLANATIONS, Wrong, shown
from renderer.kinds.schema import schema_of
from renderer.model import Document, Origin, Path, Problem, Severity, Tree, folded
from renderer.values import Value, field

T = TypeVar("T")

_TYPES = {
    "string": ("a text", "Write a text."),
    "integer": ("a whole number", "Write a whole number, without quotes or a decimal point."),
    "number": ("a number", "Write a number, without quotes."),
    "boolean": ("true or false", "Write true or false, without quotes."),
    "object": ("a mapping", "Write a mapping: lines of `key: value`, indented, or {} for none."),
    "array": ("a list", "Write a list: lines that begin with `- `, or [a, b]."),
}
"""What a type is called, and how to write one."""


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


def decode(documents: Iterable[Document], tree: Tree) -> Fleet:
    """The fleet that the documents describe; of those with one name the first, without those that are broken."""
    fleet = Fleet()
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
            help = f"Write {name} for {near}." if near else f"Add {name}: {_choices(known)}."
            yield Problem("policy/missing-key", origin, f"{name} is missing", help)
        elif not isinstance(value, str):
            yield Problem("policy/type", origin.below(name), f"{name} must be a text", f"Write {_choices(known)}.")
        elif value not in known:
            near = _suggestion(value, known)
            help = near or f"Write {_choices(known)}; keep other manifests in another directory."
            yield Problem("policy/value", origin.below(name), f"{name} {shown(value)} is not known here", help)
            if not near:  # somebody else's API has kinds of its own
                return


def _duplicate(key: tuple[str, str], origin: Origin, first: Origin) -> Problem:
    place = first.below("metadata", "name").position
    message = f"{key[0]} {key[1]} is declared twice, first at {place.file}:{place.line}"
    return Problem("policy/duplicate-name", origin.below("metadata", "name"), message, "Rename or remove one of them.")


def has_null(data: Any) -> bool:
    """Whether a key or an item stands there with nothing behind it."""
    if isinstance(data, dict):
        data = data.values()
    elif not isinstance(data, list):
        return data is None
    return any(map(has_null, data))


@cache
def _rules(model: type[msgspec.Struct]) -> tuple[dict[str, Any], Any]:
    """The schema of a model and what holds a document against it: made once for all documents with errors."""
    import jsonschema_rs  # late: a fleet without errors never pays for it

    root = schema_of(model)
    return root, jsonschema_rs.validator_for(root)


def mistakes(model: type[msgspec.Struct], origin: Origin) -> list[Problem]:
    """Every error of one document by the schema of its model."""
    root, validator = _rules(model)
    data = origin.document.data
    errors = validator.iter_errors(data)
    problems = dict.fromkeys(
        problem for error in errors if not _of_fraction(error) for problem in _explain(root, data, origin, error)
    )
    refused = {problem.origin.path for problem in problems}
    return [*problems, *(one for one in _fractions(data, origin) if one.origin.path not in refused)]


def _of_fraction(error: Any) -> bool:
    """Whether it is about the size of a fraction, which is refused for its type."""
    return isinstance(error.instance, float) and error.schema_path[-1] in ("minimum", "maximum")


def _fractions(value: Any, at: Origin) -> Iterator[Problem]:
    """A schema takes 200.0 for a whole number; the models do not."""
    if isinstance(value, dict | list):
        for step, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _fractions(item, at.below(step))
    elif isinstance(value, float):
        yield Problem("policy/type", at, *_wrong_type(folded(at.path), value, "integer"))


def _explain(root: dict[str, Any], data: dict[str, Any], origin: Origin, error: Any) -> Iterator[Problem]:
    path: Path = tuple(error.instance_path)
    value = _at(data, path)
    *place, keyword = error.schema_path
    rule = _at(root, tuple(place))
    at, name = Origin(origin.document, path), folded(path) or "the document"
    if value is None:
        yield Problem("policy/type", at, f"{name} is empty", "Give it a value, or remove the key.")
        return
    match keyword:
        case "required":
            for key in rule["required"]:
                if key not in value:
                    yield Problem(
                        "policy/missing-key", at, f"{key} is missing in {name}", f"Add {key}:{_hint(rule, key)}"
                    )
        case "additionalProperties":
            known = list(rule.get("properties", ()))
            for key in value.keys() - set(known):
                yield Problem(
                    "policy/unknown-key",
                    Origin(at.document, (*path, key), key=True),
                    f"unknown key {shown(key)}",
                    _key_help(key, known),
                )
        case "type":
            yield Problem("policy/type", at, *_wrong_type(name, value, rule["type"]))
        case "enum":
            yield _not_among([str(choice) for choice in rule["enum"]], value, at, name)
        case _ if "propertyNames" in place:
            yield from _wrong_keys(_at(root, tuple(place[: place.index("propertyNames") + 1])), value, at)
        case _:
            wrong = _wrong(rule, keyword, value, name, error.message)
            yield Problem(wrong.code, at, wrong.message, wrong.help)


def _not_among(known: Sequence[str], value: Any, at: Origin, name: str) -> Problem:
    help = f"Write {_choices(known)}."
    if not isinstance(value, str):
        return Problem("policy/type", at, _wrong_type(name, value, "string")[0], help)
    message = f"{shown(value)} is not a value of {name}"
    return Problem("policy/value", at, message, _suggestion(value, known) or help)


def _wrong_keys(rule: dict[str, Any], value: dict[str, Any], at: Origin) -> Iterator[Problem]:
    for key in value:
        if len(key) > rule.get("maxLength", len(key)) or not re.search(rule.get("pattern", ""), key):
            wrong = EXPLANATIONS[rule["title"]](key)
            yield Problem(wrong.code, Origin(at.document, (*at.path, key), key=True), wrong.message, wrong.help)


def _wrong(rule: Any, keyword: str, value: Any, name: str, message: str) -> Wrong:
    if explain := EXPLANATIONS.get(rule.get("title", "")):
        return explain(value)
    limit = rule.get(keyword)
    words = {
        "minimum": f"{name} {shown(value)} is below {limit}",
        "maximum": f"{name} {shown(value)} is above {limit}",
        "minItems": f"{name} is empty",
        "minLength": f"{name} is empty",
        "maxLength": f"{name} is longer than {limit} characters",
        "pattern": f"{name} {shown(value)} has a form that is not allowed",
    }
    helps = {"minimum": f"Use {limit} or more.", "maximum": f"Use {limit} or less."}
    help = helps.get(keyword, f"See the description of {name} in the JSON Schema.")
    return Wrong("policy/value", words.get(keyword, shown(message)), help)


def _wrong_type(name: str, value: Any, wanted: str) -> tuple[str, str]:
    if wanted == "string" and isinstance(value, int | float):
        kind = "boolean" if isinstance(value, bool) else "number"
        return f"{name} must be a text, and without quotes this is a {kind}", "Put it in quotes, as it stands there."
    if wanted == "integer" and isinstance(value, str) and value.isdigit():
        return (
            f"{name} must be a whole number, not the text {shown(value)}",
            f"Write it without quotes: {shown(value)}.",
        )
    type_, help = _TYPES[wanted]
    return f"{name} must be {type_}, not {_type(value)}", help


def _type(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case int():
            return "a number"
        case float():
            return "a number with a fraction"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _key_help(key: str, known: list[str]) -> str:
    return _suggestion(key, known) or (f"Known keys here: {', '.join(sorted(known))}." if known else "Remove it.")


def _suggestion(word: str, known: Sequence[str]) -> str:
    by_case = {name.lower(): name for name in known}
    near = [by_case[word.lower()]] if word.lower() in by_case else get_close_matches(word, known, 1)
    return f"Did you mean {near[0]}?" if near else ""


def _hint(rule: dict[str, Any], key: str) -> str:
    """The values that a missing key may have, where there are few."""
    enum = rule.get("properties", {}).get(key, {}).get("enum")
    return f" {_choices([str(choice) for choice in enum])}." if enum else " with its value."


def _choices(known: Sequence[str]) -> str:
    return known[0] if len(known) == 1 else f"one of {', '.join(known)}"


def _at(node: Any, path: Path) -> Any:
    for step in path:
        node = node[step]
    return node
