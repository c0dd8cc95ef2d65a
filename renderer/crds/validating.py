"""The rules of a CustomResourceDefinition as a validator.

As server-side apply does, unknown fields are refused (a plain create would drop them in silence).  Not evaluated: CEL
rules (`x-kubernetes-validations`), string formats, and that entries of a list of type map have keys of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

import jsonschema_rs

from renderer.crds.reading import Fault, Schema
from renderer.model import Body, Path, folded

_KEPT = (
    *("type", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required"),
)
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        **{name: {"type": "string"} for name in ("name", "generateName", "namespace", "resourceVersion", "uid")},
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        **{name: {"type": "integer"} for name in ("generation", "deletionGracePeriodSeconds")},
        **{name: {"type": ["string", "null"]} for name in ("creationTimestamp", "deletionTimestamp", "selfLink")},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "ownerReferences": {"type": "array", "items": {"type": "object"}},
        "managedFields": {"type": "array", "items": {"type": "object"}},
    },
}


class Rules:
    """What an API server checks of the objects of one version."""

    def __init__(self, schema: Schema) -> None:
        self._closed = _closed(schema, embedded=True)
        # OpenAPI's words are those of draft 4, where exclusiveMinimum is a boolean.
        self._validator = jsonschema_rs.Draft4Validator(self._closed)

    def faults(self, body: Body) -> Iterator[Fault]:
        """Every reason to refuse the object."""
        for error in self._validator.iter_errors(body):
            yield from _explained(error, self._closed)


# OpenAPI to JSON Schema.


def _closed(schema: Schema, *, embedded: bool = False) -> Schema:
    """The schema with fields that it does not name refused."""
    out = _values(schema)
    properties = {name: _closed(child) for name, child in schema.get("properties", {}).items()}
    if embedded or schema.get("x-kubernetes-embedded-resource"):
        given = properties.get("metadata")
        properties |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _metadata(given)}
        out["required"] = sorted({"apiVersion", "kind", *out.get("required", ())})
    out["properties"] = properties  # also where there are none: the validator names unknown fields only then
    if isinstance(schema.get("items"), dict):
        out["items"] = _closed(schema["items"])
    open = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("type") != "object"
    others = schema.get("additionalProperties", bool(open))
    out["additionalProperties"] = _closed(others) if isinstance(others, dict) else others
    return out


def _metadata(given: Schema | None) -> Schema:
    """ObjectMeta, which definitions leave out, with what they say of its fields (a pattern for the name)."""
    narrowed = (given or {}).get("properties", {})
    known: Schema = _METADATA["properties"]
    return {**_METADATA, "properties": {**known, **{name: narrowed[name] for name in narrowed if name in known}}}


def _values(schema: Schema) -> Schema:
    """What a schema says of values; under allOf, anyOf, oneOf and not it says nothing of unknown fields."""
    out = {name: schema[name] for name in _KEPT if name in schema}
    if "required" in out:  # the server fills in defaults before it validates
        fields = schema.get("properties", {})
        out["required"] = [name for name in out["required"] if "default" not in fields.get(name, {})]
        if not out["required"]:
            del out["required"]
    if schema.get("x-kubernetes-int-or-string"):
        out["type"] = ["integer", "string"]
    elif schema.get("format") in _RANGES and schema.get("type") == "integer":
        low, high = _RANGES[schema["format"]]
        out = {"minimum": low, "maximum": high} | out
    if schema.get("nullable") and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    if schema.get("x-kubernetes-list-type") == "set":
        out["uniqueItems"] = True
    for name in ("allOf", "anyOf", "oneOf"):
        if name in schema and not schema.get("x-kubernetes-int-or-string"):
            out[name] = [_open(child) for child in schema[name]]
    if isinstance(schema.get("not"), dict):
        out["not"] = _open(schema["not"])
    return out


def _open(schema: Schema) -> Schema:
    out = _values(schema)
    if "properties" in schema:
        out["properties"] = {name: _open(child) for name, child in schema["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            out[name] = _open(schema[name])
    return out


# Errors to words.


def _explained(error: jsonschema_rs.ValidationError, schema: Schema) -> Iterator[Fault]:
    path: Path = tuple(error.instance_path)
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.AdditionalProperties):
        parent: Any = schema
        for step in error.schema_path[:-1]:
            parent = parent[step]
        for name in kind.unexpected:
            yield _unknown((*path, name), name, parent.get("properties", {}))
        return
    where = folded(path) or "the object"
    yield Fault(path, f"{where}: {error.message}", "Correct the value, or the cluster's versions.")


def _unknown(path: Path, name: str, known: Iterable[str]) -> Fault:
    near = get_close_matches(name, known, 1) or [one for one in known if one.lower() == name.lower()]
    help = f"The nearest known field is {near[0]}." if near else _known_fields(sorted(known))
    message = f"{folded(path)} is not a field of this version: server-side apply refuses the whole object"
    return Fault(path, message, help)


def _known_fields(known: list[str]) -> str:
    if not known:
        return "No fields are known there."
    shown = ", ".join(known[:10])
    return f"Known there: {shown}{f' and {len(known) - 10} more' if len(known) > 10 else ''}."
