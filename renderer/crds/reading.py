"""CustomResourceDefinitions from files and folders of a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from renderer import documents
from renderer.model import Body, Once, Path, Tree, TreeError, walk
from renderer.values import Value, field
from renderer.words import listed

if TYPE_CHECKING:
    from renderer.crds.validating import Rules

Schema: TypeAlias = dict[str, Any]

_KIND = "CustomResourceDefinition"


class Fault(Value, frozen=True):
    """What an API server would refuse, and at which field."""

    path: Path
    message: str
    help: str


class Version:
    """One served version of a kind."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @cached_property
    def _rules(self) -> Rules:
        from renderer.crds.validating import Rules  # late: rendering reads definitions and validates nothing

        return Rules(self.schema)

    def faults(self, body: Body) -> Iterator[Fault]:
        """Every reason to refuse the object."""
        return self._rules.faults(body)


class Definition(Value, frozen=True, eq=False):
    """One CustomResourceDefinition: its served versions by name."""

    group: str
    kind: str
    versions: Mapping[str, Version]

    def faults(self, body: Body) -> Iterator[Fault]:
        """Every reason why the object would be refused."""
        version = str(body.get("apiVersion", "")).rpartition("/")[2]
        if version in self.versions:
            yield from self.versions[version].faults(body)
            return
        served = listed(f"{self.group}/{name}" for name in sorted(self.versions)) if self.versions else "nothing"
        message = f"{body.get('apiVersion')} is not served: the CustomResourceDefinition of {self.kind} serves {served}"
        yield Fault(("apiVersion",), message, "Set operatorResource.apiVersion, or correct the cluster's versions.")


Definitions: TypeAlias = dict[tuple[str, str], Definition]
"""By group and kind."""


class Exported(Value, frozen=True):
    """The definitions in a file or folder, and in words what of it cannot be used."""

    definitions: Definitions = field(default_factory=dict)
    unusable: list[str] = field(default_factory=list)


class _Unreadable(Exception):
    """A text that holds a CustomResourceDefinition which cannot be read; the place in it comes first."""


def read(tree: Tree, path: str, name: str = "") -> Exported:
    """The definitions in a file, or in all YAML and JSON files below a folder.

    With a `name`, files that do not hold that text are not parsed.  Many clusters share such files: each is read
    once, equal contents are parsed once wherever they lie, and the answer is not to be changed.
    """
    return _read(Once(tree), path, name)


@lru_cache(maxsize=64)
def _read(once: Once, path: str, name: str) -> Exported:
    found, empty = Exported(), True
    for file, data in _files(once.tree, path, found.unusable):
        empty &= _KIND.encode() not in data
        if name.encode() in data:
            _take(file, data, found)
    if empty and not found.unusable:
        found.unusable.append(f"{path or 'the folder'} holds no {_KIND}")
    return found


def _take(file: str, data: bytes, found: Exported) -> None:
    try:
        for one in _parsed(data):
            if found.definitions.setdefault((one.group, one.kind), one) is not one:
                found.unusable.append(f"{file}: {one.kind} of {one.group} is defined more than once: keep one release")
    except _Unreadable as error:
        found.unusable.append(f"{file}:{error}")


@lru_cache(maxsize=256)
def _parsed(data: bytes) -> list[Definition]:
    read = documents.read_foreign("", data, documents.GENERATED)
    if read.findings:
        first = read.findings[0]
        raise _Unreadable(f"{first.position.line}: {first.message}")
    return [_definition(body) for document in read.documents for body in _flat(document.data)]


def _files(tree: Tree, path: str, unusable: list[str]) -> Iterator[tuple[str, bytes]]:
    """The file with its bytes, or each file below the folder."""
    try:
        yield path, tree.read(path)
        return
    except TreeError as error:
        reason = error
    entered = False
    try:
        for name, entry in walk(tree, path):
            entered = True
            if entry.problem:
                unusable.append(f"{name}: {entry.problem}")
            elif name.endswith((".yaml", ".yml", ".json")):
                yield from _file(tree, name, unusable)
    except TreeError as error:  # nested too deep, or no folder, which is told below
        if entered:
            unusable.append(f"{path}: {error}")
    if not entered and path:
        unusable.append(f"{path}: {reason}")


def _file(tree: Tree, name: str, unusable: list[str]) -> Iterator[tuple[str, bytes]]:
    try:
        yield name, tree.read(name)
    except TreeError as error:
        unusable.append(f"{name}: {error}")


def _flat(body: Body) -> Iterator[Body]:
    """The definitions in a document, which may be the list that `kubectl get` or the API server gives."""
    kind = str(body.get("kind", ""))
    if kind == _KIND:
        yield body
    elif kind.endswith("List") and isinstance(body.get("items"), list):
        for item in body["items"]:  # which may leave the kind out
            yield from _flat({"kind": kind.removesuffix("List"), **item}) if isinstance(item, dict) else ()


def _definition(body: Body) -> Definition:
    try:
        spec = body["spec"]
        versions = {
            str(version["name"]): Version({**version["schema"]["openAPIV3Schema"]})
            for version in spec["versions"]
            if version["served"]
        }
        return Definition(str(spec["group"]), str(spec["names"]["kind"]), versions)
    except (KeyError, TypeError):
        raise _Unreadable(f" a {_KIND} without group, kind, versions or schema (apiextensions.k8s.io/v1)") from None
