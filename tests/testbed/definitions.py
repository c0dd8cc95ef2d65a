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
    """Whether every version is announced, and objects can be listed in it."""
    spec = body["spec"]
    group, plural = spec["group"], spec["names"]["plural"]
    try:
        groups = {found["name"]: found for found in access.get("/apis")["groups"]}
        announced = {found["version"] for found in groups[group]["versions"]}
        for version in spec["versions"]:
            resources = access.get(f"/apis/{group}/{version['name']}")["resources"]
            if version["name"] not in announced or plural not in {found["name"] for found in resources}:
                return False
            access.get(f"/apis/{group}/{version['name']}/{plural}")
    except (Refused, KeyError):
        return False
    return True


def _remove(access: Access, name: str) -> None:
    try:
        access.delete(f"{_PATH}/{name}")
    except Refused as refused:
        if not refused.missing:
            raise
    until(lambda: not access.exists(f"{_PATH}/{name}"), f"{name} goes")
    plural, _, group = name.partition(".")
    until(lambda: not _announced(access, group, plural), f"{name} is no longer announced")


def _announced(access: Access, group: str, plural: str) -> bool:
    """Whether any version of the group still lists the kind: the next release must not be taken for this one."""
    versions = [found["versions"] for found in access.get("/apis")["groups"] if found["name"] == group]
    paths = [f"/apis/{group}/{version['version']}" for found in versions for version in found]
    try:
        return any(plural in {kind["name"] for kind in access.get(path)["resources"]} for path in paths)
    except Refused as refused:
        if not refused.missing:
            raise
        return False
