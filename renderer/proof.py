"""Holds what kustomize built against what was rendered: each patch changed one object, and only the fields intended."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from renderer import documents
from renderer.kinds.base import OperatorObject
from renderer.model import Body, Overlay, Path, folded
from renderer.words import shortened

Key: TypeAlias = tuple[str, str, str, str]
"""apiVersion, kind, namespace and name: what an object is known by."""

APPEND = "-"
_SHOWN = 5
_MISSING = object()
_FOLDER = "Look for another kustomization in that folder; if there is none, report this as a bug."
_CHANGE = "Correct the base, or report this as a bug: the patch does not do what the policies ask for."


class Unreadable(Exception):
    """What kustomize gave out is no list of objects."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something that is not as intended.  `path` is the field of our own rendered object, where there is one."""

    code: str
    message: str
    help: str
    path: Path = ()


class Reader:
    """What kustomize gives out to objects; equal texts are read once."""

    def __init__(self) -> None:
        self._known: dict[str, Body] = {}

    def objects(self, out: str) -> dict[Key, Body]:
        """The objects of one build.  Raises `Unreadable`."""
        found: dict[Key, Body] = {}
        # kustomize begins a line with --- between objects only: every line of an object's texts is indented.
        for text in filter(str.strip, re.split(r"^---\n", out, flags=re.MULTILINE)):
            body = self._body(text)
            if key(body) in found:
                raise Unreadable(f"{named(key(body))} stands there twice")
            found[key(body)] = body
        return found

    def _body(self, text: str) -> Body:
        if text not in self._known:
            read = documents.read_foreign("the result", text.encode(), documents.GENERATED)
            if read.findings:
                raise Unreadable(read.findings[0].message)
            if len(read.documents) != 1:
                raise Unreadable(f"one object was expected where {len(read.documents)} stand")
            self._known[text] = read.documents[0].data
        return self._known[text]


def key(body: Body) -> Key:
    """What the object is known by; an absent part is empty."""
    metadata = body.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    parts = (body.get("apiVersion"), body.get("kind"), metadata.get("namespace"), metadata.get("name"))
    return str(parts[0] or ""), str(parts[1] or ""), str(parts[2] or ""), str(parts[3] or "")


def named(one: Key) -> str:
    """`HyperConverged openshift-cnv/kubevirt-hyperconverged`."""
    _, kind, namespace, name = one
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def own(overlay: Overlay, form: str) -> dict[Key, Body]:
    """The whole objects that an overlay renders: all of its files but kustomizations and the operator's patch."""
    found: dict[Key, Body] = {}
    for path, text in overlay.files.items():
        folder, _, name = path.rpartition("/")
        if name != "kustomization.yaml" and (folder != "operator" or form == "partial"):
            for document in documents.read_foreign(path, text.encode(), documents.GENERATED).documents:
                found[key(document.data)] = document.data
    return found


def whole(wanted: Mapping[Key, Body], built: Mapping[Key, Body]) -> Iterator[Mismatch]:
    """Exactly the wanted objects were built, each equal as data."""
    for one in built.keys() - wanted.keys():
        yield Mismatch("build/output", f"the build gives {named(one)}, which was not rendered", _FOLDER)
    for one in wanted.keys() - built.keys():
        yield Mismatch("build/output", f"the build does not give {named(one)}, which was rendered", _FOLDER)
    for one in wanted.keys() & built.keys():
        for path, rendered, found in _shown(differences(wanted[one], built[one])):
            built_as = f"{folded(path)} of {named(one)} is {_value(found)} after the build"
            message = f"{built_as}, and {_value(rendered)} was rendered"
            yield Mismatch("build/output", message, _FOLDER, path)


def patched(
    before: Mapping[Key, Body], after: Mapping[Key, Body], operator: OperatorObject, overlay: Overlay
) -> Iterator[Mismatch]:
    """One object differs, the operator object, and in it the intended fields alone, each with its value."""
    wanted = next((one for one in after if is_operator(one, operator)), None)
    for one in sorted(before.keys() ^ after.keys()):
        what = "takes away" if one in before else "brings"
        yield Mismatch("build/patch", f"the patch {what} {named(one)}", _CHANGE)
    for one in sorted(before.keys() & after.keys()):
        for path, old, new in () if one == wanted else islice(differences(before[one], after[one]), 1):
            message = f"the patch changes {folded(path)} of {named(one)} from {_value(old)} to {_value(new)}"
            yield Mismatch("build/patch", message, f"Only the operator object may change. {_CHANGE}")
    if wanted is None:
        message = f"the build does not give {operator.kind} {operator.namespace}/{operator.name}"
        yield Mismatch("build/patch", message, "Correct operatorResource, or the base.")
    elif wanted in before:
        yield from _fields(before[wanted], after[wanted], wanted, overlay.intent)


def is_operator(one: Key, operator: OperatorObject) -> bool:
    """Whether this is the operator object; a base may leave its namespace to whoever applies it."""
    api_version, kind, namespace, name = one
    same = (api_version, kind, name) == (operator.api_version, operator.kind, operator.name)
    return same and namespace in (operator.namespace, "")


def _fields(before: Body, after: Body, one: Key, intent: Sequence[tuple[Path, Any]]) -> Iterator[Mismatch]:
    wanted = with_fields(before, after, intent)
    for path, intended, found in _shown(differences(wanted, after)):
        old = at(before, path)
        if old == intended or (intended is _MISSING and old is _MISSING):
            message = f"the patch also changes {folded(path)} of {named(one)} from {_value(old)} to {_value(found)}"
        else:
            message = f"{folded(path)} of {named(one)} is {_value(found)} after the build, not {_value(intended)}"
        yield Mismatch("build/patch", message, _CHANGE, path)


def with_fields(before: Body, after: Body, intent: Sequence[tuple[Path, Any]]) -> Body:
    """`before` with the intended fields, and the parents that they need.

    What is appended stands where `after` has it: the base's own patches may append more after ours.
    """
    wanted = deepcopy(before)
    for path, value in intent:
        *parents, last = path
        node: Any = wanted
        for step, following in zip(parents, path[1:], strict=True):
            if not isinstance(node, dict):
                break
            if not isinstance(node.get(step), dict | list):
                node[step] = [] if following == APPEND else {}
            node = node[step]
        if isinstance(node, list):
            there = at(after, path[:-1])
            index = there.index(value) if isinstance(there, list) and value in there else len(node)
            node.insert(index, value)
        elif isinstance(node, dict):
            node[last] = value
    return wanted


def differences(one: Any, other: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """The deepest fields that differ, with both values.  Types count: 1 is not true."""
    if isinstance(one, dict) and isinstance(other, dict):
        for step in sorted(one.keys() | other.keys(), key=str):
            yield from differences(one.get(step, _MISSING), other.get(step, _MISSING), (*path, step))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from differences(first, second, (*path, index))
    elif one is not other and (type(one) is not type(other) or one != other):
        yield path, one, other


def at(body: Any, path: Path) -> Any:
    """The value at a path, or a mark that there is none."""
    for step in path:
        if isinstance(body, dict):
            body = body.get(step, _MISSING)
        elif isinstance(body, list) and isinstance(step, int) and step < len(body):
            body = body[step]
        else:
            return _MISSING
    return body


def _shown(found: Iterator[tuple[Path, Any, Any]]) -> Iterator[tuple[Path, Any, Any]]:
    return islice(found, _SHOWN)


def _value(value: Any) -> str:
    if value is _MISSING:
        return "absent"
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return shortened(text, 200)
