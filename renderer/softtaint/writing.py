"""The writes: one guarded patch for each node that changes, from a few threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any, Final

from renderer.softtaint.cluster import CONFLICT, NOT_FOUND, UNPROCESSABLE, Cluster, Refused, Stopped, Unreachable
from renderer.softtaint.nodes import Node
from renderer.softtaint.plan import Choice, changed
from renderer.softtaint.taints import Taint
from renderer.values import Value

THREADS: Final = 4
_ATTEMPTS: Final = 5
_IN_A_ROW: Final = 3
"""Nodes that could not be reached one after the other before the others are not tried any more."""


class Result(StrEnum):
    """What became of a write."""

    WRITTEN = "written"
    GONE = "gone"
    REPLACED = "replaced"
    LEFT = "left"
    CONFLICT = "conflict"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    STOPPED = "stopped"
    PRETENDED = "would_write"
    """Nothing was written, as this is a dry run."""


FAILURES: Final = (Result.CONFLICT, Result.REFUSED, Result.UNREACHABLE, Result.STOPPED)
"""Those after which a node is not as it should be; nodes that are gone, or new ones of the same name, are not ours
to write in this pass, nor are those that were marked for deletion meanwhile."""


class Written(Value, frozen=True):
    """`choice` as it was planned, with the node as it was first read: what is told of is the change from there, as an
    answer of ours may have been lost; `node` as it was before the last attempt, `redone` how often it changed under us.
    """

    choice: Choice
    result: Result
    node: Node
    level: int
    redone: int = 0
    message: str = ""

    @property
    def before(self) -> int:
        """The number of taints that it had."""
        return len(self.choice.node.keys)


def operations(node: Node, wanted: list[Taint]) -> list[dict[str, Any]]:
    """A JSON patch that applies only to this very node with these very taints: none of others is lost or moved.

    The test of a field that is not there is one for null (tried on kube-apiserver 1.36).
    """
    change = (
        {"op": "add", "path": "/spec/taints", "value": wanted} if wanted else {"op": "remove", "path": "/spec/taints"}
    )
    return [
        {"op": "test", "path": "/metadata/uid", "value": node.uid},
        {"op": "test", "path": "/spec/taints", "value": node.taints},
        change,
    ]


def write(
    cluster: Cluster, selector: Mapping[str, str], choices: Sequence[Choice], may_write: Callable[[], bool]
) -> Iterator[Written]:
    """What became of each choice, in their order.  Nothing more is sent once `may_write` says no."""
    writer = _Writer(cluster, selector, may_write)
    if choices:
        with ThreadPoolExecutor(min(THREADS, len(choices)), "write") as pool:
            yield from pool.map(writer.write, choices)


class _Writer:
    def __init__(self, cluster: Cluster, selector: Mapping[str, str], may_write: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._may_write = may_write
        self._selector = selector
        self._lock = threading.Lock()
        self._unreachable = 0

    def write(self, choice: Choice) -> Written:
        """Never raises but for a bug."""
        if self._unreachable >= _IN_A_ROW:
            return self._end(choice, Result.UNREACHABLE, message="not tried: the API server did not answer for others")
        try:
            found = self._write(choice)
        except Stopped:
            return self._end(choice, Result.STOPPED)
        except Unreachable as error:
            found = self._end(choice, Result.UNREACHABLE, message=str(error))
        except Refused as error:
            found = self._end(choice, Result.REFUSED, message=str(error))
        with self._lock:
            self._unreachable = self._unreachable + 1 if found.result is Result.UNREACHABLE else 0
        return found

    def _end(self, choice: Choice, result: Result, message: str = "") -> Written:
        return Written(choice, result, choice.node, choice.level or 0, message=message)

    def _write(self, choice: Choice) -> Written:
        node, level, message = choice.node, choice.level or 0, ""
        for attempt in range(_ATTEMPTS):
            wanted = changed(node, level)
            if wanted is None:  # somebody did, or an answer of ours was lost
                return Written(choice, Result.WRITTEN, node, level, attempt)
            refused = self._patch(node, wanted)
            if refused is None:
                return Written(choice, Result.WRITTEN, node, level, attempt)
            fresh = self._cluster.node(node.name, self._selector)
            if fresh is None:
                return Written(choice, Result.GONE, node, level, attempt)
            if fresh.uid != node.uid:
                return Written(choice, Result.REPLACED, node, level, attempt)
            if fresh.marked:
                return Written(choice, Result.LEFT, fresh, level, attempt)
            node, level, message = fresh, level if fresh.in_scope else 0, str(refused)
        return Written(choice, Result.CONFLICT, node, level, _ATTEMPTS, message)

    def _patch(self, node: Node, wanted: list[Taint]) -> Refused | None:
        """The answer where the node was not as it was read."""
        if not self._may_write():
            raise Stopped
        try:
            self._cluster.patch_node(node.name, operations(node, wanted))
        except Refused as refused:
            if refused.status in (NOT_FOUND, CONFLICT, UNPROCESSABLE):
                return refused
            raise
        return None
