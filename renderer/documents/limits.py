"""How much of a file is read."""

from __future__ import annotations

from renderer.values import Value

MAX_BYTES = 1 << 20
"""The largest policy file that is read: 1 MiB, some two thousand clusters in one file."""
MAX_FOREIGN_BYTES = 4 << 20
"""The largest manifest of somebody else that is read; big CustomResourceDefinitions fit."""
MAX_DEPTH = 32
MAX_NODES = 20_000
MAX_DOCUMENTS = 5_000


class Limits(Value, frozen=True):
    """How much of one file is read: bytes, levels of nesting, fields once aliases are expanded, documents.

    `patience` is the longest text in characters that the slow reader is given: about two seconds.
    """

    size: int
    depth: int
    nodes: int
    documents: int
    patience: int = 64 << 10


POLICY = Limits(MAX_BYTES, MAX_DEPTH, MAX_NODES, MAX_DOCUMENTS)
FOREIGN = Limits(MAX_FOREIGN_BYTES, MAX_DEPTH, 50 * MAX_NODES, 4 * MAX_DOCUMENTS)
GENERATED = Limits(16 << 20, 128, 200 * MAX_NODES, 20 * MAX_DOCUMENTS)
"""For what programs write: exported CustomResourceDefinitions, and what kustomize builds."""
