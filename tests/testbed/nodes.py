"""Fleets of nodes as large as real ones, and a kept-open connection to make and read many of them."""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import local
from typing import Any

from tests.testbed.access import Access, Refused

NODES = "/api/v1/nodes"
SCHEDULABLE = {"kubevirt.io/schedulable": "true"}
JSON, JSON_PATCH, MERGE_PATCH = "application/json", "application/json-patch+json", "application/merge-patch+json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""To be answered with little of an object."""
WORKERS = 4
IMAGES = 40
CONDITIONS = 30
_FLEET = "testbed/fleet"
_SECONDS = 60

Object = dict[str, Any]


class Wire:
    """What `Access.send` does over one connection that stays open: for one thread."""

    def __init__(self, access: Access) -> None:
        context = ssl.create_default_context(cafile=str(access.authority))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the server makes its certificate by itself
        self._connection = http.client.HTTPSConnection("127.0.0.1", access.port, timeout=_SECONDS, context=context)
        self._headers = {"Authorization": f"Bearer {access.token}"}

    def send(self, method: str, path: str, body: Any = None, content_type: str = JSON, accept: str = JSON) -> Any:
        """The answer's body.  Raises `Refused` for an answer that is none of 2xx."""
        text = None if body is None else json.dumps(body)
        self._connection.request(method, path, text, {**self._headers, "Content-Type": content_type, "Accept": accept})
        answer = self._connection.getresponse()
        content = answer.read()
        if not http.client.OK <= answer.status < http.client.MULTIPLE_CHOICES:
            raise Refused(answer.status, content.decode())
        return json.loads(content)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def wires(access: Access) -> Iterator[Callable[[], Wire]]:
    """Gives each thread that asks a connection of its own, and closes all of them."""
    mine, opened = local(), list[Wire]()

    def wire() -> Wire:
        if not hasattr(mine, "wire"):
            mine.wire = Wire(access)
            opened.append(mine.wire)
        found: Wire = mine.wire
        return found

    try:
        yield wire
    finally:
        for one in opened:
            one.close()


@contextmanager
def fleet(access: Access, bodies: Iterable[Object], name: str = "fleet") -> Iterator[list[str]]:
    """Nodes with exactly these taints, by a name for all of them; they are gone afterwards."""
    nodes = [_labelled(body, name) for body in bodies]
    try:
        with wires(access) as wire, ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(lambda body: add(wire(), body), nodes))
        yield [body["metadata"]["name"] for body in nodes]
    finally:
        access.delete(f"{NODES}?labelSelector={_FLEET}%3D{name}")


def add(wire: Wire, body: Object) -> None:
    """A node with exactly these taints: the API server gives every new one a taint more, until it is found ready."""
    made = wire.send("POST", NODES, body)
    wanted = body["spec"].get("taints")
    change = {"spec": {"taints": wanted}}
    if made["spec"].get("taints") != wanted:
        wire.send("PATCH", f"{NODES}/{body['metadata']['name']}", change, MERGE_PATCH)


def listed(access: Access) -> dict[str, Object]:
    """All nodes by name."""
    return {node["metadata"]["name"]: node for node in access.get(NODES)["items"]}


def taints(node: Object) -> list[Object]:
    """The taints of a node, in their order."""
    found: list[Object] = node["spec"].get("taints") or []
    return found


def small(name: str, *, taints: Sequence[Object] = (), unschedulable: bool = False, **metadata: Any) -> Object:
    """A ready node that can run virtual machines, with what a scheduler wants to know."""
    size = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    spec: Object = {"taints": list(taints)} if taints else {}
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **SCHEDULABLE}, **metadata},
        "spec": spec | ({"unschedulable": True} if unschedulable else {}),
        "status": {"conditions": [condition("Ready", "True")], "capacity": size, "allocatable": size},
    }


def large(name: str) -> Object:
    """A node with 40 images and 30 conditions: about 18 KB in an answer of the API server."""
    body = small(name)
    body["metadata"]["labels"] |= {f"cpu-feature.node.kubevirt.io/feature-{number}": "true" for number in range(20)}
    body["metadata"]["annotations"] = {f"example.com/annotation-{number}": "x" * 40 for number in range(6)}
    body["spec"] |= {"podCIDR": "10.128.0.0/23", "podCIDRs": ["10.128.0.0/23"], "providerID": f"example:///{name}"}
    body["status"]["conditions"] += [condition(f"Problem{number}", "False") for number in range(1, CONDITIONS)]
    body["status"]["images"] = [_image(number) for number in range(IMAGES)]
    body["status"]["addresses"] = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": "10.0.0.1"}]
    return body


def condition(kind: str, status: str, heartbeat: str = "2026-01-01T00:00:00Z") -> Object:
    """A condition as a kubelet reports it."""
    return {
        "type": kind,
        "status": status,
        "reason": f"KubeletHas{kind}",
        "message": f"kubelet says about {kind} that the status is {status}",
        "lastHeartbeatTime": heartbeat,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def _image(number: int) -> Object:
    name = f"registry.example/platform/component-{number}"
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {"names": [f"{name}@sha256:{digest}", f"{name}:v1.{number}.0"], "sizeBytes": 100_000_000 + number}


def _labelled(body: Object, name: str) -> Object:
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), _FLEET: name}}}
