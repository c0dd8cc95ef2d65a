"""The files of a base, each read and parsed once for all clusters."""

from __future__ import annotations

from renderer import documents
from renderer.bases import paths
from renderer.bases.values import BaseProblem, unreadable
from renderer.model import Document, Origin, Path, Position, Tree, TreeError
from renderer.values import Value

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_LIST = "operations"


class Parsed(Value, frozen=True):
    """The documents of one text, and what is wrong with it.

    `skipped`: it is only too large or too deep for us, so that it may hold anything.
    """

    documents: tuple[Document, ...] = ()
    problems: tuple[BaseProblem, ...] = ()
    skipped: bool = False


class Files:
    """A tree with a memory of what was parsed, without the folder `rendered`.

    What is rendered must not decide what is rendered: the result would depend on what was committed before.
    """

    def __init__(self, tree: Tree, rendered: str | None = None) -> None:
        self._tree = tree
        self._rendered = rendered
        self._texts: dict[str, bytes | TreeError] = {}
        self._parsed: dict[str, Parsed] = {}
        self._alike: dict[bytes, Parsed] = {}
        self._names: dict[str, frozenset[str]] = {}

    def read(self, path: str) -> bytes:
        """The bytes of a file.  Raises `TreeError`."""
        if path not in self._texts:
            try:
                self._refuse_rendered(path)
                self._texts[path] = self._tree.read(path)
            except TreeError as error:
                self._texts[path] = error
        found = self._texts[path]
        if isinstance(found, TreeError):
            raise found
        return found

    def names(self, folder: str) -> frozenset[str]:
        """The names in a folder; none where there is no such folder.  Raises `TreeError`."""
        if folder not in self._names:
            self._refuse_rendered(folder)
            self._names[folder] = frozenset(entry.name for entry in self._tree.list(folder))
        return self._names[folder]

    def _refuse_rendered(self, path: str) -> None:
        if self._rendered is not None and paths.within(path, self._rendered):
            raise TreeError("it is rendered by this tool, and a base must not depend on what is")

    def documents(self, path: str) -> Parsed:
        """The documents of a file.  Raises `TreeError`."""
        if path not in self._parsed:
            self._parsed[path] = self._parse(path, self.read(path))
        return self._parsed[path]

    def _parse(self, path: str, data: bytes) -> Parsed:
        """Fleets are made by copying: what is the same text in many bases is parsed once."""
        alike = self._alike.get(data)
        if alike is not None:
            return Parsed(tuple(documents.moved(each, path) for each in alike.documents))
        parsed = parse(path, data)
        if not parsed.problems:  # they name their file
            self._alike[data] = parsed
        return parsed


def parse(file: str, data: bytes) -> Parsed:
    """A text as kustomize would read it."""
    found = documents.read_foreign(file, data)
    skipped = bool(found.findings) and all(each.code == "policy/limit" for each in found.findings)
    return Parsed(tuple(found.documents), tuple(unreadable(found.findings)), skipped)


def parse_list(file: str, text: str) -> Parsed:
    """A text that holds a list, as the one field `operations` of a document; only the first document counts."""
    lines: list[str] = []
    for line in text.splitlines():
        marker = line.startswith("---")
        if marker and any(kept.strip() and not kept.lstrip().startswith("#") for kept in lines):
            break
        lines.append(line[3:] if marker else line)
    body = "\n".join([f"{_LIST}:", *(f" {line}" for line in lines), ""])
    found = parse(file, body.encode())
    shifted = tuple(Document(each.file, each.data, _Shifted(each)) for each in found.documents)
    problems = tuple(
        BaseProblem(each.code, each.message, each.help, _moved(each.origin)) if each.origin else each
        for each in found.problems
    )
    return Parsed(shifted, problems, found.skipped)


class _Shifted(Value, frozen=True):
    """Marks of a text that was read one line further down and one column further right than it stands."""

    document: Document

    def at(self, path: Path, *, key: bool = False) -> Position:
        position = self.document.marks.at(path, key=key)
        return Position(position.file, max(position.line - 1, 1), max(position.column - 1, 1), position.length)


def _moved(origin: Origin) -> Origin:
    document = origin.document
    return Origin(Document(document.file, document.data, _Shifted(document)), origin.path, origin.key)


def explained(error: TreeError, reference: str, origin: Origin | None) -> BaseProblem:
    """Why a path of the tree cannot be read, as a problem of the base."""
    if error.missing:
        help = "Correct the path, or commit the file."
        return BaseProblem("base/missing", f"{reference} does not exist", help, origin)
    code = "base/outside" if error.code.endswith("/outside") else "base/unreadable"
    help = "Bases are read from plain files and folders of this repository."
    return BaseProblem(code, f"{reference} cannot be read: {error}", help, origin)
