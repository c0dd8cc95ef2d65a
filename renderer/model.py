"""The frozen values that pass from stage to stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from renderer.values import Value, field, replace

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list indices from the root of a document."""

Body: TypeAlias = dict[str, Any]
"""A Kubernetes object as plain data; the one place where free-form data is passed on."""


class Severity(StrEnum):
    """How much a finding weighs; only errors stop a render."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Position(Value, frozen=True, order=True):
    """A place in a file of the repository; line and column count from 1, length in characters."""

    file: str
    line: int = 1
    column: int = 1
    length: int = 1

    @property
    def place(self) -> str:
        """`platform/prod/hco.yaml:3`: within a message about another place."""
        return f"{self.file}:{self.line}"


class Marks(Protocol):
    """Knows where each field of one document stands."""

    def at(self, path: Path, *, key: bool = False) -> Position:
        """The position of the value at `path`, or of its key; of the nearest parent if it is absent."""


class Document(Value, frozen=True, eq=False):
    """One YAML document as plain data, with the marks that lead back to its text; equal only to itself."""

    file: str
    data: Body
    marks: Marks


class Origin(Value, frozen=True):
    """The field of a document that asked for something."""

    document: Document
    path: Path = ()
    key: bool = False

    @property
    def position(self) -> Position:
        return self.document.marks.at(self.path, key=self.key)

    def below(self, *path: str | int) -> Origin:
        return replace(self, path=self.path + path, key=False)


class Finding(Value, frozen=True):
    """Something a person should know, at a place, with the next step to take."""

    code: str
    severity: Severity
    position: Position
    message: str
    help: str = ""
    clusters: tuple[str, ...] = ()


class Problem(Value, frozen=True):
    """A finding whose place is still a field of a document; it becomes a `Finding` once per run."""

    code: str
    origin: Origin
    message: str
    help: str = ""


class TreeError(Exception):
    """A path of the tree that cannot be read: missing, outside, not a file, or too large."""

    def __init__(self, reason: str, *, missing: bool = False, code: str = "policy/unreadable") -> None:
        super().__init__(reason)
        self.missing = missing
        self.code = code


class Entry(Value, frozen=True):
    """One name in a folder of the tree; `problem` tells why a link or special file is not followed.

    A link to a folder counts as a folder, and is never followed.
    """

    name: str
    folder: bool
    problem: str = ""


class Tree(Protocol):
    """The files of one repository state; paths are relative to its root, with forward slashes."""

    def list(self, folder: str) -> Sequence[Entry]:
        """The entries of a folder, sorted by name; none where the folder does not exist."""

    def read(self, path: str) -> bytes:
        """The bytes of a file.  Raises `TreeError`."""


class Once:
    """A tree by its identity, to remember what was read of it: another of the same folder may see other files."""

    __slots__ = ("tree",)

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Once) and self.tree is other.tree

    def __hash__(self) -> int:
        return id(self.tree)


class Component(StrEnum):
    """The four API clients of KubeVirt that have a rate limiter of their own."""

    API = "api"
    CONTROLLER = "controller"
    HANDLER = "handler"
    WEBHOOK = "webhook"

    @property
    def program(self) -> str:
        """What people call it in logs and dashboards."""
        return {"webhook": "virt-api's webhook client"}.get(self.value, f"virt-{self.value}")


class Limit(Value, frozen=True):
    """A token bucket: `qps` calls a second sustained, `burst` calls at once."""

    qps: int
    burst: int

    def __str__(self) -> str:
        return f"{self.qps}/{self.burst}"


class Via(StrEnum):
    """How a setting of KubeVirt reaches a cluster whose KubeVirt object HyperConverged owns."""

    FIELD = "field"
    JSONPATCH = "jsonpatch"


class OperatorField(StrEnum):
    """What policies set in the operator object beside the rate limits of its components."""

    REPLICAS = "virtApi.replicas"
    REFERENCE_POLICY = "instancetype.referencePolicy"


class Setting(Value, frozen=True):
    """One field of an operator object in release-neutral words, and the policy line that asked for it.

    A component stands for its rate limit, whose value is a `Limit`.  `subject` is the first part of the codes of
    findings on it; `replaces_annotation` that the policy acknowledges that HyperConverged's JSON patch annotation
    is replaced.
    """

    field: Component | OperatorField
    value: Any
    origin: Origin
    subject: str
    via: Via = Via.FIELD
    replaces_annotation: bool = False


class Manifest(Value, frozen=True):
    """One object of an overlay folder, for the folders that a single policy owns.

    A folder that begins with `_` stands apart: `overlays/<folder>/<cluster>/`, applied by itself.
    """

    folder: str
    name: str
    body: Body
    policy: str


class Overlay(Value, frozen=True):
    """The files of one cluster, relative to its folder, and the fields that the operator object gets, with values.

    A path whose last step is `-` appends to that list.  Nothing else of the object may change.  `apart` holds the
    files that are never part of the cluster's kustomization: by the name of the group, such as `_node-tuning`,
    those of `overlays/<group>/<cluster>/`.
    """

    files: Mapping[str, str]
    intent: tuple[tuple[Path, Any], ...] = ()
    apart: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def printable(text: str) -> str:
    r"""Foreign text on one line, and harmless to a terminal: what is not printable as `\n`, `\x1b`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def itemized(help: str, items: Iterable[str]) -> str:
    """A help and a line for each item.  The only line breaks of a help are those between them."""
    return "\n".join([help, *map(printable, items)])


def folded(path: Path) -> str:
    """`spec.versions.kubevirt`, `spec.profiles[0]`: a path as people write it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def walk(tree: Tree, folder: str) -> Iterator[tuple[str, Entry]]:
    """Every file below a folder, and every entry that cannot be followed, in order of path."""
    for entry in tree.list(folder):
        path = f"{folder}/{entry.name}" if folder else entry.name
        if entry.folder and not entry.problem:
            yield from walk(tree, path)
        else:
            yield path, entry
