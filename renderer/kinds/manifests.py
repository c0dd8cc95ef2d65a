"""The manifests of the repository that a policy is checked against, found by glob patterns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from renderer import documents, header
from renderer.model import Body, Once, Origin, Problem, Tree, TreeError, itemized
from renderer.values import Value, field
from renderer.words import counted

_OPAQUE = ("helmCharts", "helmChartInflationGenerator", "generators")
_MANIFESTS = (".yaml", ".yml", ".json")
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
MAX_DEPTH = 32


class Manifests(Value, frozen=True):
    """The objects found, each with its place, and what could not be looked into, in words."""

    objects: list[tuple[Body, Origin]] = field(default_factory=list)
    opaque: list[str] = field(default_factory=list)


def find(tree: Tree, patterns: Iterable[str]) -> Manifests:
    """Every object in the files that match.  `*` and `?` match within one name, `**` any number of folders.

    Many clusters ask for the same files of a tree: they are read once, and the answer is not to be changed.
    """
    return _find(Once(tree), tuple(patterns))


def not_inspected(code: str, opaque: Collection[str], wanted: str, at: Origin) -> Iterator[Problem]:
    """What could not be looked into, and so may hold what is `wanted`."""
    if opaque:
        message = f"{counted(len(opaque), 'place')} could not be searched for {wanted}"
        yield Problem(code, at, message, itemized("Look there by hand:", list(opaque)))


@lru_cache(maxsize=16)
def _find(once: Once, patterns: tuple[str, ...]) -> Manifests:
    tree, found, seen = once.tree, Manifests(), set[str]()
    for pattern in patterns:
        matches = sorted(_match(tree, "", pattern.split("/"), {0}, found.opaque))
        if not matches:
            found.opaque.append(f"{pattern} matches no file")
        for path in matches:
            if path not in seen:
                seen.add(path)
                _read(tree, path, found)
    return found


def _match(tree: Tree, folder: str, steps: list[str], at: set[int], opaque: list[str], depth: int = 0) -> Iterator[str]:
    """The matches below a folder that is reached at the steps `at`: all at once, so that no folder is walked twice."""
    last = len(steps) - 1
    for index, step in enumerate(steps[:last]):
        if index in at and step == "**":  # which also matches no folder at all
            at = at | {index + 1}
    for entry in tree.list(folder):
        path = f"{folder}/{entry.name}" if folder else entry.name
        matched = {index for index in at if steps[index] == "**" or fnmatchcase(entry.name, steps[index])}
        onward = {index if steps[index] == "**" else index + 1 for index in matched} - {last + 1}
        if not matched or entry.name == ".git":
            continue
        if entry.problem:
            opaque.append(f"{path}: {entry.problem}")
        elif entry.folder and onward and depth >= MAX_DEPTH:
            opaque.append(f"{path}: folders are nested more than {MAX_DEPTH} deep")
        elif entry.folder and onward:
            yield from _match(tree, path, steps, onward, opaque, depth + 1)
        elif not entry.folder and last in matched:
            yield path


def _read(tree: Tree, path: str, found: Manifests) -> None:
    name = path.rpartition("/")[2]
    if not name.endswith(_MANIFESTS) and name not in _KUSTOMIZATIONS:
        if ".yaml." in name or ".yml." in name:
            found.opaque.append(f"{path} is a template")
        return
    try:
        data = tree.read(path)
    except TreeError as error:
        found.opaque.append(f"{path}: {error}")
        return
    # What the policies ask for is no evidence of what is there without them.
    if header.ownership(data.decode("utf-8", "replace").replace("\r\n", "\n")) is not header.Ownership.FOREIGN:
        return
    read = documents.read_foreign(path, data)
    found.opaque.extend(f"{path}:{item.position.line}: {item.message}" for item in read.findings)
    for document in read.documents:
        if name in _KUSTOMIZATIONS:
            found.opaque.extend(_hidden(path, document.data))
        else:
            found.objects.extend(_flatten(document.data, Origin(document)))


def _flatten(body: Any, origin: Origin) -> Iterator[tuple[Body, Origin]]:
    if not isinstance(body, dict):
        return
    kind = str(body.get("kind", ""))
    if kind.endswith("List") and isinstance(body.get("items"), list):
        named = {"apiVersion": body.get("apiVersion"), "kind": kind.removesuffix("List")}  # an item may leave them out
        for index, item in enumerate(body["items"]):
            yield from _flatten({**named, **item} if isinstance(item, dict) else item, origin.below("items", index))
    else:
        yield body, origin


def _hidden(path: str, kustomization: Body) -> Iterator[str]:
    for key in _OPAQUE:
        if kustomization.get(key):
            yield f"{path}: {key} make objects that are not in the repository"
    resources = kustomization.get("resources")
    for resource in resources if isinstance(resources, list) else []:
        if isinstance(resource, str) and ("://" in resource or resource.startswith("git@") or "?ref=" in resource):
            yield f"{path}: {resource} is remote"


def of_kind(body: Body, kind: str, api: str) -> bool:
    """Whether an object is of a kind, in any version of the group that `api` begins with."""
    return body.get("kind") == kind and str(body.get("apiVersion", "")).startswith(api)


def below(node: Any, *path: str) -> dict[str, Any]:
    """The mapping at a path of something foreign; empty where there is none."""
    for step in path:
        node = node.get(step) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else {}


def entries(node: Any, of: type = dict) -> list[Any]:
    """The entries of a list that are of a type; none where it is no list."""
    return [item for item in node if isinstance(item, of)] if isinstance(node, list) else []
