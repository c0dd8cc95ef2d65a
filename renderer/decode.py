"""Documents to typed policies, or every error of each document at its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

import msgspec

from renderer.kinds import KINDS, Cluster, ClusterFacts, Policy
from renderer.kinds.base import API_VERSION
from renderer.kinds.fields import EXPLANATIONS, Wrong, shown
from renderer.model import Document, Origin, Path, Problem, Tree, folded

T = TypeVar("T")

_TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
}


@dataclass(frozen=True, slots=True, eq=False)
class Decoded(Generic[T]):
    """A typed document and its origin; equal only to itself."""

    value: T
    origin: Origin


@dataclass(frozen=True, slots=True)
class Fleet:
    """All documents of a repository, by kind; `problems` are errors of single documents."""

    clusters: list[Decoded[Cluster]] = field(default_factory=list)
    facts: list[Decoded[ClusterFacts]] = field(default_factory=list)
    policies: list[Decoded[Policy]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def decode(documents: Iterable[Document], tree: Tree) -> Fleet:
    """The fleet that the documents describe; documents with errors are left out of it."""
    fleet = Fleet()
    for document in documents:
        origin = Origin(document)
        kind = document.data.get("kind")
        if document.data.get("apiVersion") != API_VERSION or not isinstance(kind, str) or kind not in KINDS:
            fleet.problems.extend(_foreign(document.data, origin))
            continue
        try:
            value = msgspec.convert(document.data, KINDS[kind])
        except msgspec.ValidationError as error:
            fleet.problems.extend(_errors(kind, document.data, origin, str(error)))
            continue
        fleet.problems.extend(value.check(origin, tree))
        _sort(fleet, value, origin)
    fleet.problems.extend(_duplicates(fleet))
    return fleet


def _sort(fleet: Fleet, value: Cluster | ClusterFacts | Policy, origin: Origin) -> None:
    match value:
        case Cluster():
            fleet.clusters.append(Decoded(value, origin))
        case ClusterFacts():
            fleet.facts.append(Decoded(value, origin))
        case Policy():
            fleet.policies.append(Decoded(value, origin))


def _foreign(data: dict[str, Any], origin: Origin) -> Iterator[Problem]:
    """What is wrong with a document that is none of ours; a ConfigMap may hold the numbers of a policy."""
    api_version, kind = data.get("apiVersion"), data.get("kind")
    if (api_version, kind) == ("v1", "ConfigMap"):
        return
    for name, value, known in (("apiVersion", api_version, [API_VERSION]), ("kind", kind, list(KINDS))):
        if name not in data:
            yield Problem("policy/missing-key", origin, f"{name} is missing", f"Add {name}: {_choices(known)}.")
        elif not isinstance(value, str):
            yield Problem("policy/type", origin.below(name), f"{name} must be a text", f"Write {_choices(known)}.")
        elif value not in known:
            help = _suggestion(value, known) or f"Write {_choices(known)}; keep other manifests in another directory."
            yield Problem("policy/value", origin.below(name), f"{name} {shown(value)} is not known here", help)


def _duplicates(fleet: Fleet) -> Iterator[Problem]:
    first: dict[tuple[str, str], Origin] = {}
    items: Iterable[Decoded[Any]] = (*fleet.clusters, *fleet.facts, *fleet.policies)
    for item in items:
        key = (str(item.origin.document.data["kind"]), item.value.metadata.name)
        if key in first:
            place = first[key].below("metadata", "name").position
            message = f"{key[0]} {key[1]} is declared twice, first at {place.file}:{place.line}"
            yield Problem(
                "policy/duplicate-name", item.origin.below("metadata", "name"), message, "Rename or remove one of them."
            )
        first.setdefault(key, item.origin)


def _errors(kind: str, data: dict[str, Any], origin: Origin, fallback: str) -> list[Problem]:
    """Every error of one document.  Imported late: a fleet without errors never pays for it."""
    import jsonschema_rs

    from renderer.kinds.schema import schema

    root = schema(kind)
    errors = jsonschema_rs.validator_for(root).iter_errors(data)
    problems = [problem for error in errors for problem in _explain(root, data, origin, error)]
    return problems or [Problem("policy/value", origin, fallback, "Compare it with the kind's JSON Schema.")]


def _explain(root: dict[str, Any], data: dict[str, Any], origin: Origin, error: Any) -> Iterator[Problem]:
    path: Path = tuple(error.instance_path)
    value = _at(data, path)
    *place, keyword = error.schema_path
    rule = _at(root, tuple(place))
    at, name = Origin(origin.document, path), folded(path) or "the document"
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
            known = [str(choice) for choice in rule["enum"]]
            if isinstance(value, str):
                help = _suggestion(value, known) or f"Write {_choices(known)}."
                yield Problem("policy/value", at, f"{shown(value)} is not a value of {name}", help)
            else:
                yield Problem("policy/type", at, *_wrong_type(name, value, "string"))
        case _:
            wrong = _wrong(root, place, rule, keyword, value, name, error.message)
            yield Problem(wrong.code, at, wrong.message, wrong.help)


def _wrong(
    root: dict[str, Any], place: Sequence[str | int], rule: Any, keyword: str, value: Any, name: str, message: str
) -> Wrong:
    if "propertyNames" in place:
        index = list(place).index("propertyNames")
        rule = _at(root, tuple(place[: index + 1]))
        offender = next((key for key in value if _breaks(rule, key)), "")
        return EXPLANATIONS[rule["title"]](offender)
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
    return Wrong(
        "policy/value", words.get(keyword, shown(message)), f"See the description of {name} in the kind's JSON Schema."
    )


def _breaks(rule: dict[str, Any], key: str) -> bool:
    import re

    return len(key) > rule.get("maxLength", len(key)) or not re.search(rule.get("pattern", ""), key)


def _wrong_type(name: str, value: Any, wanted: str) -> tuple[str, str]:
    if wanted == "string" and isinstance(value, int | float):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return (
            f"{name} must be a text, and YAML reads {text} as a {_type(value)}",
            f'Quote it: "{text}", as it stands in the file.',
        )
    if wanted == "integer" and isinstance(value, str) and value.isdigit():
        return (
            f"{name} must be a whole number, not the text {shown(value)}",
            f"Write it without quotes: {shown(value)}.",
        )
    return (
        f"{name} must be {_TYPES.get(wanted, wanted)}, not {_type(value, article=True)}",
        f"Write {_TYPES.get(wanted, wanted)}.",
    )


def _type(value: Any, *, article: bool = False) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            name = "boolean"
        case int() | float():
            name = "number"
        case str():
            name = "text"
        case list():
            name = "list"
        case _:
            name = "mapping"
    return f"a {name}" if article else name


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
