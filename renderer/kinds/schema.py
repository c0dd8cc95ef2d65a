"""The JSON Schema of each kind, derived from its model: for editors, and to list every error of a document."""

from __future__ import annotations

from typing import Any

import msgspec

from renderer.kinds import KINDS


def schema(kind: str) -> dict[str, Any]:
    """The schema of one kind (draft 2020-12).  Raises `KeyError` for a kind that does not exist."""
    generated = schema_of(KINDS[kind])
    document = generated["$defs"][kind]
    document["properties"]["kind"]["description"] = document["description"]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": kind, **generated}


def schema_of(model: type[msgspec.Struct]) -> dict[str, Any]:
    """What a model accepts, without the dialect."""
    generated: dict[str, Any] = _without_null(msgspec.json.schema(model))
    return generated


def _without_null(node: Any) -> Any:
    """None stands for "left out" in the models; an explicit null is refused, so the schema does not have it."""
    if isinstance(node, list):
        return [_without_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: _without_null(value) for key, value in node.items() if value is not None}
    if "anyOf" in out:
        choices = [choice for choice in out.pop("anyOf") if choice != {"type": "null"}]
        out = {**choices[0], **out} if len(choices) == 1 else {**out, "anyOf": choices}
    if isinstance(out.get("enum"), list):
        out["enum"] = [value for value in out["enum"] if value is not None]
    return out
