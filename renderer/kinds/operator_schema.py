"""Which schema of the descheduler operator a cluster has, where its CustomResourceDefinitions were exported.

One version number was built from two branches more than once: an exported definition settles which it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from renderer import crds
from renderer.kinds.manifests import below, entries
from renderer.model import Origin, Problem, Tree
from renderer.releases.descheduler_operator import API_VERSION, CRD, SCHEMAS, TABLE, Schema, minor
from renderer.values import Value


class Settled(Value, frozen=True):
    """The present schema and the coming one, and what is wrong with the exported definitions."""

    schemas: tuple[str, ...]
    problems: list[Problem]


def settle(stated: tuple[str, ...], tree: Tree, path: str, at: Origin) -> Settled:
    """What the definitions below `path` make of the schemas that the versions stand for."""
    exported = crds.read(tree, path, CRD)
    group, _, version = API_VERSION.partition("/")
    definition = exported.definitions.get((group, "KubeDescheduler"))
    served = definition.versions.get(version) if definition else None
    present = _nearest(stated[0], below(served.schema, "properties", "spec", "properties") if served else {})
    problems = list(unusable(exported, at))
    if TABLE[present].series != TABLE[stated[0]].series:
        problems.append(_other(TABLE[present], TABLE[stated[0]], at))
        present = stated[0]
    return Settled(tuple(dict.fromkeys((present, *stated[1:]))), problems)


def _other(exported: Schema, stated: Schema, at: Origin) -> Problem:
    """A definition settles which of the schemas of a minor release it is; another release it cannot be."""
    message = (
        f"the exported definition is that of {exported.title}, and the version given is that of {stated.title}: "
        "the version holds, and the definition is passed over"
    )
    help = "Export the definition of this cluster anew, or correct versions.deschedulerOperator."
    return Problem("release/mismatch", at, message, help)


def unusable(exported: crds.Exported, at: Origin) -> Iterator[Problem]:
    """What of the exported definitions cannot be used."""
    for reason in exported.unusable:
        yield Problem("build/crds", at, reason, "Export them anew: kubectl get crd NAME -o yaml")


def unsettled(schema: Schema, since: int) -> str:
    """Where the version does not tell whether the operator has that schema, or the next one that has it all."""
    if not schema.unsettled or since != minor(schema.name) + 1:
        return ""
    return (
        f" Operators {schema.unsettled} exist with schema {schema.name} and with 4.{since}: export the cluster's CRD "
        "and name it in Cluster.spec.crds, which decides."
    )


def _nearest(stated: str, spec: dict[str, Any]) -> str:
    """The schema nearest to the stated one that has those fields; the stated one where no known schema has them."""
    alike = [name for name in SCHEMAS if _holds(TABLE[name], spec)]
    if not alike or stated in alike:
        return stated
    return min(alike, key=lambda name: abs(SCHEMAS.index(name) - SCHEMAS.index(stated)))


def _holds(schema: Schema, spec: dict[str, Any]) -> bool:
    """Whether a CRD's `spec` has exactly the fields, profiles and rules of a schema."""
    profiles = below(spec, "profiles")
    custom = below(spec, "profileCustomizations", "properties")
    low = below(custom, "devLowNodeUtilizationThresholds")
    return (
        schema.profiles == set(entries(below(profiles, "items").get("enum"), of=str))
        and schema.customizations == custom.keys()
        and schema.limits == below(spec, "evictionLimits", "properties").keys()
        and schema.low_default == ("default" in low)
        and schema.rules == ("x-kubernetes-validations" in profiles)
    )
