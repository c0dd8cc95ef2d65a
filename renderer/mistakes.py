"""Every mistake of a document against its model, at its place and in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from renderer.kinds.fields import EXPLANATIONS, Wrong
from renderer.kinds.schema import schema_of
from renderer.model import Origin, Path, Problem, folded
from renderer.releases.descheduler_operator import neutral
from renderer.words import did_you_mean, shown

_TYPES = {
    "string": ("a text", "Write a text."),
    "integer": ("a whole number", "Write a whole number, without quotes or a decimal point."),
    "number": ("a number", "Write a number, without quotes."),
    "boolean": ("true or false", "Write true or false, without quotes."),
    "object": ("a mapping", "Write a mapping: lines of `key: value`, indented, or {} for none."),
    "array": ("a list", "Write a list: lines that begin with `- `, or [a, b]."),
}


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
            yield Problem("policy/type", at, *_wrong_type(name, value, rule["type"], rule))
        case "enum":
            beside = _at(data, path[:-1]) if path and isinstance(path[-1], int) else []
            yield _not_among([str(choice) for choice in rule["enum"]], value, at, name, beside)
        case _ if "propertyNames" in place:
            yield from _wrong_keys(_at(root, tuple(place[: place.index("propertyNames") + 1])), value, at)
        case _:
            wrong = _wrong(rule, keyword, value, name, error.message, _spared(root, place))
            yield Problem(wrong.code, at, wrong.message, wrong.help)


def _in_seconds(value: Any, rule: Mapping[str, Any]) -> str:
    """How a bare number is written where it should be a duration; empty elsewhere."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not rule.get("title", "").endswith("duration"):
        return ""
    written = f"{value}s"
    return f"Write {written}." if re.search(rule["pattern"], written) else EXPLANATIONS[rule["title"]](written).help


def _spared(root: dict[str, Any], place: list[Any]) -> str:
    """That a key may be removed, where the schema does not ask for it; empty elsewhere."""
    last = max((index for index, step in enumerate(place) if step == "properties"), default=-1)
    if last < 0 or place[last + 1] in _at(root, tuple(place[:last])).get("required", ()):
        return ""
    return f", or remove {place[last + 1]}" + ("; clusters: {} is every cluster" if place[last + 1] == "names" else "")


def _not_among(known: Sequence[str], value: Any, at: Origin, name: str, beside: Sequence[Any] = ()) -> Problem:
    """`beside` are the items of the list that the value stands in."""
    help = f"Write {choices(known)}."
    if not isinstance(value, str):
        return Problem("policy/type", at, _wrong_type(name, value, "string")[0], help)
    message = f"{shown(value)} is not a value of {name}"
    if (meant := neutral(value)) is not None and meant in beside:
        message += f": it is {meant}, which stands there already, spelled as some releases of the operator do"
        return Problem("policy/value", at, message, "Remove it.")
    return Problem("policy/value", at, message, did_you_mean(value, known) or help)


def _wrong_keys(rule: dict[str, Any], value: dict[str, Any], at: Origin) -> Iterator[Problem]:
    for key in value:
        if len(key) > rule.get("maxLength", len(key)) or not re.search(rule.get("pattern", ""), key):
            wrong = EXPLANATIONS[rule["title"]](key)
            yield Problem(wrong.code, Origin(at.document, (*at.path, key), key=True), wrong.message, wrong.help)


def _wrong(rule: Any, keyword: str, value: Any, name: str, message: str, spared: str) -> Wrong:
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
    helps = {
        "minimum": f"Use {limit} or more.",
        "maximum": f"Use {limit} or less.",
        "minItems": f"List at least one item{spared}.",
        "minLength": f"Write something{spared}.",
    }
    help = helps.get(keyword, f"See the description of {name} in the JSON Schema.")
    return Wrong("policy/value", words.get(keyword, shown(message)), help)


def _wrong_type(name: str, value: Any, wanted: str, rule: Mapping[str, Any] = {}) -> tuple[str, str]:
    if wanted == "string" and isinstance(value, int | float):
        kind = "boolean" if isinstance(value, bool) else "number"
        help = _in_seconds(value, rule) or "Put it in quotes, as it stands there."
        return f"{name} must be a text, and without quotes this is a {kind}", help
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
    return did_you_mean(key, known) or (f"Known keys here: {', '.join(sorted(known))}." if known else "Remove it.")


def _hint(rule: dict[str, Any], key: str) -> str:
    """The values that a missing key may have, where there are few."""
    enum = rule.get("properties", {}).get(key, {}).get("enum")
    return f" {choices([str(choice) for choice in enum])}." if enum else " with its value."


def choices(known: Sequence[str]) -> str:
    """The words that are known, as a person may choose from them."""
    return known[0] if len(known) == 1 else f"one of {', '.join(known)}"


def _at(node: Any, path: Path) -> Any:
    for step in path:
        node = node[step]
    return node
