"""CustomResourceDefinitions of one release at a time on the API server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from tests.facts import facts
from tests.testbed.access import Access, Refused
from tests.testbed.processes import until

_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@contextmanager
def definitions(access: Access, names: Iterable[str]) -> Iterator[None]:
    """The definitions with those file names; they and all their objects are gone afterwards."""
    bodies = [_load(name) for name in names]
    try:
        for body in bodies:
            access.create_at(_PATH, body)
        for body in bodies:
            until(lambda body=body: _serves(access, body), body["metadata"]["name"])  # type: ignore[misc]
        yield
    finally:
        for body in bodies:
            _remove(access, body["metadata"]["name"])


def _load(name: str) -> dict[str, Any]:
    body: dict[str, Any] = yaml.load(facts(f"crds/{name}.yaml").read_text(), yaml.CSafeLoader)
    # Nobody here converts: an object is what it is in the version that is stored.
    body["spec"].pop("conversion", None)
    body.pop("status", None)
    return body


def _serves(access: Access, body: dict[str, Any]) -> bool:
    """Whether objects can be listed in every version."""
    spec = body["spec"]
    try:
        for version in spec["versions"]:
            access.get(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
    except Refused:
        return False
    return True


def _remove(access: Access, name: str) -> None:
    try:
        access.delete(f"{_PATH}/{name}")
    except Refused as refused:
        if not refused.missing:
            raise
    until(lambda: not access.exists(f"{_PATH}/{name}"), f"{name} goes")
