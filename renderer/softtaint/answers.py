"""What the Kubernetes API answers, as much of it as the job reads.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from renderer.softtaint.nodes import Node
from renderer.softtaint.taints import Taint

_QUOTED: Final = 1000
"""Characters of an answer: refusals of an admission policy take some hundred."""


class _Status(Struct):
    message: str = ""


class _Condition(Struct):
    type: str
    status: str


class _Metadata(Struct, rename="camel"):
    name: str
    uid: str
    labels: dict[str, str] = {}
    deletion_timestamp: str | None = None


class _Spec(Struct):
    taints: list[Taint] | None = None
    unschedulable: bool = False


class _NodeStatus(Struct):
    conditions: list[_Condition] = []


class Item(Struct):
    """A node."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


class _ListMetadata(Struct):
    next: str = msgspec.field(name="continue", default="")


class Page(Struct):
    """A part of a list of nodes."""

    metadata: _ListMetadata
    items: list[Item]


def node(item: Item, selector: Mapping[str, str]) -> Node:
    """In scope where the selector matches."""
    labels = item.metadata.labels
    return Node(
        name=item.metadata.name,
        uid=item.metadata.uid,
        taints=item.spec.taints,
        in_scope=all(labels.get(key) == value for key, value in selector.items()),
        ready=any(one.type == "Ready" and one.status == "True" for one in item.status.conditions),
        cordoned=item.spec.unschedulable,
        deleted=item.metadata.deletion_timestamp is not None,
    )


def message(data: bytes) -> str:
    """What an answer that is a refusal says."""
    try:
        return msgspec.json.decode(data, type=_Status).message[:_QUOTED]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return " ".join(data[:_QUOTED].decode(errors="replace").split())
