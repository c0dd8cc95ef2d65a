"""Which schemas of the descheduler operator a cluster has: by its version, and by its exported CRD if there is one."""

from __future__ import annotations

from typing import Any

from renderer import documents
from renderer.kinds.base import Site
from renderer.model import Tree, TreeError, walk
from renderer.releases.descheduler_operator import CRD, SCHEMAS, TABLE, Schema


def schemas(site: Site) -> tuple[Schema, ...]:
    """The present schema and the coming one; empty where no known version is given.

    One version number was built from two branches more than once: an exported CRD settles which it is.
    """
    stated = site.descheduler.schemas
    found = [_settled(stated[0], site), *stated[1:]] if stated else []
    return tuple(TABLE[name] for name in dict.fromkeys(found))


def _settled(stated: str, site: Site) -> str:
    spec = _exported(site.tree, site.crds) if site.crds else None
    if spec is None:
        return stated
    alike = [name for name in SCHEMAS if _holds(TABLE[name], spec)]
    if not alike or stated in alike:
        return stated
    return min(alike, key=lambda name: abs(SCHEMAS.index(name) - SCHEMAS.index(stated)))


def _holds(schema: Schema, spec: dict[str, Any]) -> bool:
    """Whether a CRD's `spec` has exactly the fields, profiles and rules of a schema."""
    profiles = _at(spec, "profiles")
    custom = _at(spec, "profileCustomizations", "properties")
    low = _at(custom, "devLowNodeUtilizationThresholds")
    return (
        schema.profiles == set(_at(profiles, "items").get("enum", ()))
        and schema.customizations == custom.keys()
        and schema.limits == _at(spec, "evictionLimits", "properties").keys()
        and schema.low_default == ("default" in low)
        and schema.rules == ("x-kubernetes-validations" in profiles)
    )


def _exported(tree: Tree, path: str) -> dict[str, Any] | None:
    """The properties of `spec` in the operator's CRD, from a folder or file of exported CRDs."""
    try:
        files = [found for found, entry in walk(tree, path) if not entry.problem] or [path]
    except TreeError:
        files = [path]
    for file in files:
        try:
            data = tree.read(file)
        except TreeError:
            continue
        if CRD.encode() not in data:
            continue
        for document in documents.read_foreign(file, data).documents:
            if found := _properties(document.data):
                return found
    return None


def _properties(crd: Any) -> dict[str, Any] | None:
    if _at(crd, "metadata").get("name") != CRD:
        return None
    versions = _at(crd, "spec").get("versions")
    for version in versions if isinstance(versions, list) else []:
        found = _at(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
        if found:
            return found
    return None


def _at(node: Any, *path: str) -> dict[str, Any]:
    """The mapping at a path; empty where there is none."""
    for step in path:
        node = node.get(step) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}
