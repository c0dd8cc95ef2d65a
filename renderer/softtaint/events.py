"""Kubernetes Events on nodes whose taints were changed: for people who describe a node.  Best effort."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from renderer.softtaint import moments
from renderer.softtaint.cluster import CONFLICT, MERGE_PATCH, Cluster, Refused, Stopped, Unreachable
from renderer.softtaint.config import NAME
from renderer.softtaint.writing import Written

MOST: Final = 100
"""In one pass; how many more there would have been is in its summary."""
_BASE: Final = "/api/v1/namespaces/default/events"
"""Where the events of objects without a namespace are."""


class _Event(Struct):
    count: int = 1


def record(cluster: Cluster, written: Sequence[Written], instance: str) -> Counter[str]:
    """One event for each change, none after the first that cannot be written.  Counts: written, failed, left_out."""
    counts = Counter({"left_out": max(len(written) - MOST, 0)})
    for one in written[:MOST]:
        try:
            _record(cluster, one, instance)
        except (Refused, Unreachable, Stopped):
            counts["failed"] += 1
            break
        counts["written"] += 1
    return +counts


def _record(cluster: Cluster, one: Written, instance: str) -> None:
    """The name stands for the node and the change, so that a repetition raises the count of the one that is there."""
    body = _body(one, instance)
    try:
        cluster.send("POST", _BASE, body)
    except Refused as refused:
        if refused.status != CONFLICT:
            raise
        path = f"{_BASE}/{body['metadata']['name']}"
        count = cluster.read("GET", path, _Event).count + 1
        change = {"count": count, "lastTimestamp": body["lastTimestamp"], "message": body["message"]}
        cluster.send("PATCH", path, change, MERGE_PATCH)


def _body(one: Written, instance: str) -> dict[str, Any]:
    node, before = one.node, one.before
    digest = hashlib.sha256(f"{node.uid} {before} {one.level}".encode()).hexdigest()[:16]
    moment = moments.rfc3339(datetime.now(UTC))
    usage = "" if one.choice.points is None else f" at {one.choice.points} % utilization"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{node.name[:200]}.{digest}", "namespace": "default"},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid},
        "reason": "SoftTaintsChanged",
        "message": f"Soft taints {before} -> {one.level}{usage}: {one.choice.reason}",
        "type": "Normal",
        "source": {"component": NAME},
        "reportingComponent": NAME,
        "reportingInstance": instance[:128],
        "count": 1,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
    }
