"""The folder of policies to documents, and what cannot be read there."""

from __future__ import annotations

from collections.abc import Iterable

from renderer import documents, ignores
from renderer.documents import Read
from renderer.model import Document, Entry, Finding, Position, Severity, Tree, TreeError, walk
from renderer.values import Value

_ENDINGS = (".yaml", ".yml")


class Policies(Value, frozen=True):
    """The documents of all policy files; `texts` are those of the files in which a finding is ignored.

    They are not `whole` if some file, or a document of one, could not be read.
    """

    documents: list[Document]
    findings: list[Finding]
    texts: dict[str, str]
    whole: bool


def read(tree: Tree, folder: str) -> Policies:
    """All documents below `folder` that can be read, whatever is wrong next to them."""
    out: list[Read] = []
    texts: dict[str, str] = {}
    for path, entry in _entries(tree, folder):
        if not path.endswith(_ENDINGS) and not (entry.folder and entry.problem):
            if path.lower().endswith(_ENDINGS):
                out.append(_other_ending(path))
            continue
        try:
            data = _bytes(tree, path, entry)
        except TreeError as error:
            help = "Make it a readable file of the repository, or move it out of the policies."
            out.append(_unread(path, str(error), help))
            continue
        out.append(documents.read(path, data))
        if ignores.MARK.search(data):
            texts[path] = data.decode("utf-8-sig", "replace")
    return Policies(
        documents=[document for one in out for document in one.documents],
        findings=[finding for one in out for finding in one.findings],
        texts=texts,
        whole=all(one.whole for one in out),
    )


def _entries(tree: Tree, folder: str) -> Iterable[tuple[str, Entry]]:
    """What there is below a folder; the folder itself, with the reason, where it cannot be entered."""
    try:
        return list(walk(tree, folder))
    except TreeError as error:
        return [(folder, Entry(folder, folder=True, problem=str(error)))]


def _bytes(tree: Tree, path: str, entry: Entry) -> bytes:
    if entry.problem:
        raise TreeError(entry.problem)
    return tree.read(path)


def _other_ending(path: str) -> Read:
    stem, _, ending = path.rpartition(".")
    message = f"the file is not read: policies end in .yaml or .yml, not in .{ending}"
    return _unread(path, message, f"Rename it to {stem.rpartition('/')[2]}.{ending.lower()}.")


def _unread(path: str, message: str, help: str) -> Read:
    return Read(findings=[Finding("policy/unreadable", Severity.ERROR, Position(path), message, help)], whole=False)
