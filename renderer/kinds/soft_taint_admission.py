"""What the API server lets the soft-tainter's account change on a node: its own two taints, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from renderer.model import Body
from renderer.softtaint.config import NAME
from renderer.softtaint.taints import EFFECT, TAINTS, VALUE

API_VERSION = "admissionregistration.k8s.io/v1"
SINCE = (1, 30)
"""The first Kubernetes with ValidatingAdmissionPolicy in v1 (KEP-3488)."""
USER = f"system:serviceaccount:{NAME}:{NAME}"

_SERVER = ("generation", "managedFields", "resourceVersion")
"""Metadata that the API server itself writes with every change."""


def policy(metadata: dict[str, Any]) -> Body:
    """Every field is compared by its name as it comes, so that those of later releases are covered as well.

    `dyn` keeps the API server's check of types from refusing to walk over an object's fields.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConditions": [{"name": "soft-tainter", "expression": f'request.userInfo.username == "{USER}"'}],
            "matchConstraints": {"resourceRules": [_nodes()]},
            "variables": [{"name": name, "expression": expression} for name, expression in _VARIABLES.items()],
            "validations": _validations(),
        },
    }


def binding(metadata: dict[str, Any]) -> Body:
    """Refuses, and leaves a line in the audit log."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": NAME, "validationActions": ["Deny", "Audit"]},
    }


def _nodes() -> dict[str, Any]:
    return {
        "apiGroups": [""],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["nodes", "nodes/*"],
        "scope": "*",
    }


def _part(whole: str, name: str, absent: str) -> str:
    return f"has({whole}.{name}) ? dyn({whole}.{name}) : dyn({absent})"


def _changed(new: str, old: str, but: tuple[str, ...] = ()) -> str:
    """The names of the fields that differ: changed, added or removed."""
    kept = f"!(k in {_listed(but)}) && " if but else ""
    differ = f"{new}.filter(k, {kept}(!(k in {old}) || {new}[k] != {old}[k]))"
    return f"{differ} + {old}.filter(k, {kept}!(k in {new}))"


def _listed(names: Sequence[str]) -> str:
    return json.dumps(list(names))  # CEL writes lists of texts as JSON does


def _foreign(taints: str) -> str:
    ours = f't.key in {_listed(TAINTS)} && has(t.value) && t.value == "{VALUE}" && t.effect == "{EFFECT}"'
    return f"{taints}.filter(t, !({ours}))"


def _managers(whole: str) -> str:
    return f"has({whole}.managedFields) ? dyn({whole}.managedFields) : dyn([])"


def _lost() -> str:
    """Entries of others that are gone, by their names: what they own is not compared.

    Gone by right are those that owned nothing but the list of taints, which is ours once we write it; and the oldest,
    once more than ten have written, in favour of one that the API server calls `ancient-changes` (apimachinery
    managedfields/internal/capmanagers.go).
    """
    ours = f'has(o.manager) && o.manager == "{NAME}"'
    fields = "dyn(o.fieldsV1)"
    spec = f'{fields}["f:spec"]'
    alone = f'size({fields}) == 1 && "f:spec" in {fields} && size({spec}) == 1 && "f:taints" in {spec}'
    taints = f"has(o.fieldsV1) && {alone}"
    same = " && ".join(
        f"(has(n.{name}) ? n.{name} : '') == (has(o.{name}) ? o.{name} : '')"
        for name in ("manager", "operation", "subresource")
    )
    kept = f"variables.newManagers.exists(n, {same})"
    merged = "variables.newManagers.exists(n, has(n.manager) && n.manager == 'ancient-changes')"
    return f"variables.oldManagers.filter(o, !({ours}) && !({taints}) && !({kept}) && !({merged}))"


_VARIABLES = {
    "newSpec": _part("object", "spec", "{}"),
    "oldSpec": _part("oldObject", "spec", "{}"),
    "newForeign": _foreign('("taints" in variables.newSpec ? variables.newSpec.taints : dyn([]))'),
    "oldForeign": _foreign('("taints" in variables.oldSpec ? variables.oldSpec.taints : dyn([]))'),
    "changedSpec": _changed("variables.newSpec", "variables.oldSpec", ("taints",)),
    "changedMetadata": _changed("dyn(object.metadata)", "dyn(oldObject.metadata)", _SERVER),
    "newManagers": _managers("object.metadata"),
    "oldManagers": _managers("oldObject.metadata"),
    "lostManagers": _lost(),
    "changedElse": _changed("dyn(object)", "dyn(oldObject)", ("metadata", "spec")),
}


def _validations() -> list[dict[str, Any]]:
    pairs = " and ".join(f"{key}={VALUE}:{EFFECT}" for key in TAINTS)
    may = f"{NAME} may add and remove the taints {pairs}, and nothing else"
    taints = {
        "expression": "variables.newForeign == variables.oldForeign",
        "message": f"{may}: every other taint stays, unchanged and in its place",
        "reason": "Forbidden",
    }
    parts = (("changedSpec", "spec"), ("changedMetadata", "metadata"), ("changedElse", "the node"))
    managers = {
        "expression": "size(variables.lostManagers) == 0",
        "message": f"{may}: refused is a loss of what others own, in metadata.managedFields",
        "reason": "Forbidden",
    }
    unchanged = [_unchanged(variable, f"{may}: refused is a change of {part}") for variable, part in parts]
    return [taints, *unchanged, managers]


def _unchanged(variable: str, message: str) -> dict[str, Any]:
    """The names of the fields stand in the answer; the message alone where they cannot be told."""
    return {
        "expression": f"size(variables.{variable}) == 0",
        "message": message,
        "messageExpression": f'"{message}, field " + variables.{variable}.join(", ")',
        "reason": "Forbidden",
    }
