"""The patches of a kustomization, from their entries to steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from renderer.bases import paths
from renderer.bases.files import Files, Parsed, explained, parse, parse_list
from renderer.bases.steps import JsonPatch, MergePatch, Opaque
from renderer.bases.targets import Target
from renderer.bases.values import Refused, Step
from renderer.model import Body, Origin, TreeError
from renderer.values import Value

_TARGET = {"group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector"}
_FETCHED = "only kustomize can fetch it"


class Text(Value, frozen=True):
    """The text of a patch: in the kustomization itself, or in a file of its own."""

    text: str
    origin: Origin
    file: str
    inline: bool


def patch_steps(files: Files, folder: str, entry: Body, origin: Origin, *, legacy: bool = False) -> list[Step]:
    """The steps of one entry of `patches` or, with `legacy`, of `patchesJson6902`."""
    given = entry.get("target")
    target = Target(given, origin.below("target")) if isinstance(given, dict) else None
    try:
        if given is not None and (target is None or not given.keys() <= _TARGET):
            raise Refused("target is not as kustomize knows it", "It has group, version, kind and name.", origin)
        text = _text(files, folder, entry, origin)
        if _is_list(text.text):
            return _json_steps(text, target, legacy=legacy)
        return _merge_steps(text, target, entry.get("options"))
    except Refused as refused:
        return [Opaque(refused.problem, target)]


def strategic_steps(files: Files, folder: str, entry: str, origin: Origin) -> list[Step]:
    """The steps of one entry of `patchesStrategicMerge`: a path, or the patch itself."""
    inline = "\n" in entry or entry.lstrip().startswith("{")
    try:
        text = Text(entry, origin, origin.document.file, True) if inline else _loaded(files, folder, entry, origin)
        return [MergePatch(patch, where, inline=inline, legacy=True) for patch, where in _patches(text)]
    except Refused as refused:
        return [Opaque(refused.problem)]


def _text(files: Files, folder: str, entry: Body, origin: Origin) -> Text:
    inline, path = entry.get("patch"), entry.get("path")
    if isinstance(inline, str) and inline.strip() and not path:
        return Text(inline, origin.below("patch"), origin.document.file, True)
    if isinstance(path, str) and path and not inline:
        return _loaded(files, folder, path, origin.below("path"))
    raise Refused("a patch has either patch or path, as a text", "Give one of the two.", origin)


def _loaded(files: Files, folder: str, reference: str, origin: Origin) -> Text:
    if paths.remote(reference):
        raise Refused(f"the patch {reference} is remote: {_FETCHED}", "Commit a copy of it.", origin)
    path = paths.resolve(folder, reference)
    if path is None:
        message = f"{reference} lies outside the repository"
        raise Refused(message, "Move it below the folder that names it.", origin, "base/outside")
    if not paths.within(path, folder):
        message = f"kustomize refuses files outside the folder that names them: {reference}"
        raise Refused(message, "Move the file below that folder.", origin)
    try:
        return Text(files.read(path).decode("utf-8-sig"), origin, path, False)
    except TreeError as error:
        problem = explained(error, reference, origin)
        raise Refused(problem.message, problem.help, origin, problem.code) from None
    except UnicodeDecodeError:
        raise Refused(f"{reference} is not UTF-8", "Save the file as UTF-8.", origin) from None


def _is_list(text: str) -> bool:
    """Whether the first thing in a YAML text is an item of a list."""
    for line in text.splitlines():
        bare = line.removeprefix("---").strip()
        if bare and not bare.startswith(("#", "%")):
            return bare.startswith(("[", "- ")) or bare == "-"
    return False


def _json_steps(text: Text, target: Target | None, *, legacy: bool) -> list[Step]:
    found = parse_list(text.file, text.text)
    _refuse_unparsed(found, text)
    operations: Any = found.documents[0].data["operations"]
    if not operations:
        return []
    if target is None:
        raise Refused("a JSON 6902 patch needs a target", "Add target: with kind and name.", text.origin)
    if not isinstance(operations, list):
        raise Refused("a JSON 6902 patch is a list of operations", "Begin each with - op:", text.origin)
    document = Origin(found.documents[0])
    places = [text.origin if text.inline else document.below("operations", i) for i in range(len(operations))]
    return [JsonPatch(target, operations, places, legacy)]


def _merge_steps(text: Text, target: Target | None, options: object) -> list[Step]:
    patches = _patches(text)
    if target is not None and len(patches) > 1:
        raise Refused("several patches in one entry cannot have a target", "Give each its own entry.", text.origin)
    given = options if isinstance(options, dict) else {}
    renames, changes_kind = given.get("allowNameChange") is True, given.get("allowKindChange") is True
    return [
        MergePatch(patch, origin, target, inline=text.inline, renames=renames, changes_kind=changes_kind)
        for patch, origin in patches
    ]


def _patches(text: Text) -> Sequence[tuple[Body, Origin]]:
    found = parse(text.file, text.text.encode())
    _refuse_unparsed(found, text)
    out = []
    for document in found.documents:
        for data, origin in items(document.data, Origin(document)):
            metadata = data.get("metadata")
            if not data.get("kind") or not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
                message = "a merge patch needs kind and metadata.name, also where it has a target"
                raise Refused(message, "Add them.", text.origin)
            out.append((data, text.origin if text.inline else origin))
    return out


def _refuse_unparsed(found: Parsed, text: Text) -> None:
    if not found.problems:
        return
    first = found.problems[0]
    at = first.origin.position if first.origin else text.origin.position
    message = f"{first.message} (line {at.line} of the patch)" if text.inline else first.message
    raise Refused(message, first.help, text.origin if text.inline or not first.origin else first.origin)


def items(data: Any, origin: Origin) -> Sequence[tuple[Body, Origin]]:
    """An object, or the objects of a list such as `kind: List`, each with its place."""
    if not isinstance(data, dict):
        return []
    listed = data.get("items")
    if not str(data.get("kind", "")).endswith("List") or "items" not in data or not isinstance(listed, list | None):
        return [(data, origin)]
    return [found for index, item in enumerate(listed or ()) for found in items(item, origin.below("items", index))]
