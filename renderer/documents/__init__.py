"""YAML text to plain data that remembers the line and column of every field."""

from __future__ import annotations

from ruamel.yaml.nodes import Node

from renderer.documents.building import Builder
from renderer.documents.editing import with_key
from renderer.documents.limits import (
    FOREIGN,
    GENERATED,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_FOREIGN_BYTES,
    MAX_NODES,
    POLICY,
    Limits,
)
from renderer.documents.marks import Marks, Source, scalar_lines, within
from renderer.documents.mending import mend
from renderer.documents.refusals import Refused, position
from renderer.model import Document, Finding, Position, Severity
from renderer.values import Value, field

__all__ = [
    "FOREIGN", "GENERATED", "MAX_BYTES", "MAX_DEPTH", "MAX_FOREIGN_BYTES", "MAX_NODES", "Limits", "Read",
    "moved", "read", "read_foreign", "scalar_lines", "with_key", "within",
]  # fmt: skip


class Read(Value, frozen=True):
    """What one file holds: its documents, and what is wrong with its text.

    It is not `whole` if some document of it could not be read at all.
    """

    documents: list[Document] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    whole: bool = True


def read(file: str, data: bytes) -> Read:
    """The documents of a policy file, also those next to one that cannot be read.

    Strict: what two YAML readers could take differently is a finding.
    """
    try:
        text = decode(file, data, POLICY.size)
    except Refused as refused:
        return Read(findings=[refused.finding], whole=False)
    found = _build(Source(file, text, POLICY), strict=True)
    if found.whole or (mended := mend(file, text, POLICY)) is None:
        return found
    others = _build(Source(file, mended.text, POLICY), strict=True)
    return Read(others.documents, mended.findings + others.findings, whole=False)


def read_foreign(file: str, data: bytes, limits: Limits = FOREIGN) -> Read:
    """The documents of a manifest that somebody else owns: read as kustomize would, without our rules."""
    try:
        text = decode(file, data, limits.size)
    except Refused as refused:
        return Read(findings=[refused.finding], whole=False)
    return _build(Source(file, text, limits), strict=False)


def moved(document: Document, file: str) -> Document:
    """The same document in another file that has the same text."""
    marks = document.marks
    return Document(file, document.data, marks.moved(file) if isinstance(marks, Marks) else marks)


def _build(source: Source, *, strict: bool) -> Read:
    """The documents up to the first that is refused."""
    out = Read()
    try:
        for index, node in enumerate(source.compose()):
            builder = Builder(source.file, strict=strict, limits=source.limits)
            plain = builder.build(node)
            out.findings.extend(builder.findings)
            if isinstance(plain, dict):
                out.documents.append(Document(file=source.file, data=plain, marks=Marks(source, index)))
            elif plain is not None:
                out.findings.append(_not_a_mapping(source.file, node, plain))
    except Refused as refused:
        return Read(out.documents, [*out.findings, refused.finding], whole=False)
    return out


def decode(file: str, data: bytes, limit: int) -> str:
    if len(data) > limit:
        message = f"the file has {len(data)} bytes; at most {limit} are read"
        raise Refused("policy/limit", Position(file), message, "Split it into several files.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Refused("policy/encoding", Position(file), "the file is UTF-16", "Save it as UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise Refused("policy/encoding", Position(file, line, column), message, "Save the file as UTF-8.") from None


def _not_a_mapping(file: str, node: Node, plain: object) -> Finding:
    kind = "a list" if isinstance(plain, list) else "a single value"
    message = f"the document is {kind}, not a mapping"
    return Finding("policy/type", Severity.ERROR, position(file, node), message, "Begin it with apiVersion: and kind:.")
