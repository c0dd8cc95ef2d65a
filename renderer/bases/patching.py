"""JSON 6902: the patch that brings wanted fields onto an object, and patches applied one operation at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from renderer.model import Body, Path, folded

Operation: TypeAlias = dict[str, Any]
"""One JSON 6902 operation: op, path and value."""

APPEND = "-"
"""As the last step of a path: the end of a list."""

_MISSING = object()
_DEEPEST = 64
_LARGEST = 100_000


class FieldError(ValueError):
    """A wanted field lies below something that cannot hold it."""

    def __init__(self, path: Path, found: object) -> None:
        super().__init__(f"{folded(path)} is {_called(found)}, which cannot hold the field")
        self.path = path
        self.found = found


def _called(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", bool: "a boolean"}
    return names.get(type(value), "a number")


class Inapplicable(Exception):
    """An operation that does not apply to the object; `index` is its place in the patch."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


def operations(body: Body, fields: Sequence[tuple[Path, Any]]) -> list[Operation]:
    """The operations that give `body` these fields, ordered by path.

    A field that exists is replaced, also by an equal value: it is ours from then on.  A missing parent is added
    once, with all our values below it.  The last step `-` appends to a list, in the order given.  None of the
    paths may lie below another one.  Raises `FieldError` where a parent is neither a mapping nor a list.
    """
    out: list[Operation] = []
    added: dict[Path, Operation] = {}
    for path, value in sorted(fields, key=lambda item: tuple(map(str, item[0]))):
        top = _existing(body, path) + 1
        if top >= len(path):
            op = "add" if path[-1] == APPEND or _at(body, path) is _MISSING else "replace"
            out.append({"op": op, "path": pointer(path), "value": value})
            continue
        parent = path[:top]
        if parent not in added:
            added[parent] = {"op": "add", "path": pointer(parent), "value": _container(path[top])}
            out.append(added[parent])
        _put(added[parent]["value"], path[top:], value)
    return out


def apply(body: Body, patch: Sequence[Operation]) -> Body:
    """The object with the operations applied; what they do not touch is shared with `body`.  Raises `Inapplicable`."""
    for index, operation in enumerate(patch):
        body = _applied(body, operation, index)
    return body


def apply_leniently(body: Body, patch: Sequence[Operation]) -> Body:
    """As `apply`, but with what kustomize forgives beyond RFC 6902.  Raises `Inapplicable`.

    A missing key of a mapping that is there can be replaced, tested for null and copied as null.  Tried with
    kustomize 5.8; source: partialDoc.get of github.com/evanphx/json-patch v4.
    """
    for index, operation in enumerate(patch):
        match operation:
            case {"op": "replace", "path": str(where), "value": _} if _misses(body, where):
                body = _applied(body, {**operation, "op": "add"}, index)
            case {"op": "test", "path": str(where), "value": None} if _misses(body, where):
                continue
            case {"op": "copy", "from": str(where), "path": path} if _misses(body, where):
                body = _applied(body, {"op": "add", "path": path, "value": None}, index)
            case _:
                body = _applied(body, operation, index)
    return body


def pointer(path: Path) -> str:
    """A JSON pointer with `~` and `/` escaped."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _existing(body: Body, path: Path) -> int:
    """How many steps of the path lead to a mapping or list that is there; null counts as not there."""
    node: Any = body
    for depth, step in enumerate(path[:-1]):
        child = _child(node, step)
        if child is _MISSING or child is None:
            return depth
        if not isinstance(child, dict | list) or isinstance(child, list) != _names_an_item(path[depth + 1]):
            raise FieldError(path[: depth + 1], child)
        node = child
    return len(path) - 1


def _at(body: Body, path: Path) -> Any:
    node: Any = body
    for step in path:
        node = _child(node, step)
    return node


def _child(node: Any, step: str | int) -> Any:
    if isinstance(node, dict):
        return node.get(step, _MISSING)
    return node[step] if isinstance(node, list) and isinstance(step, int) and 0 <= step < len(node) else _MISSING


def _names_an_item(step: str | int) -> bool:
    return isinstance(step, int) or step == APPEND


def _container(step: str | int) -> dict[str, Any] | list[Any]:
    return [] if _names_an_item(step) else {}


def _put(node: Any, path: Path, value: Any) -> None:
    """Sets a value below a container of our own, making what is missing on the way."""
    for step, following in pairwise(path):
        if isinstance(node, list):
            node.append(_container(following))
            node = node[-1]
        else:
            node = node.setdefault(step, _container(following))
    if isinstance(node, list):
        node.append(value)
    else:
        node[path[-1]] = value


def _applied(body: Body, operation: Operation, index: int) -> Body:
    problem = _malformed(operation)
    if problem:
        raise Inapplicable(index, problem)
    import jsonpatch  # it costs a tenth of the start, and most fleets have no base

    out = _unshared(body, operation)
    try:
        jsonpatch.apply_patch(out, [operation], in_place=True)
    except LookupError:
        raise Inapplicable(index, f"there is nothing at {operation.get('from', operation['path'])}") from None
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError) as error:
        raise Inapplicable(index, str(error)) from None
    if operation["op"] in ("copy", "move") and not _bounded(out):
        raise Inapplicable(index, "the object grows too large or too deep")
    return out


def _misses(body: Body, where: str) -> bool:
    """Whether the last step of a pointer is a missing key of a mapping that is there."""
    *parents, last = [_unescaped(step) for step in where.split("/")[1:]] or [""]
    node: Any = body
    for step in parents:
        node = _child(node, int(step) if isinstance(node, list) and step.isdecimal() else step)
    return isinstance(node, dict) and last not in node


def _malformed(operation: Any) -> str:
    """What the library would take in another way than kustomize does, or not at all."""
    if not isinstance(operation, dict) or not isinstance(operation.get("op"), str):
        return "an operation is a mapping with op and path"
    for key in ("path", "from") if operation["op"] in ("move", "copy") else ("path",):
        where = operation.get(key)
        if not isinstance(where, str) or not where.startswith("/"):
            return f"{key} must begin with /"
        if where.count("/") > _DEEPEST:
            return f"{key} is more than {_DEEPEST} levels deep"
    return ""


def _unshared(body: Body, operation: Operation) -> Body:
    """The object with containers of its own wherever the operation, working in place, could change one."""
    out = dict(body)
    for key in ("path", "from"):
        node: Any = out
        for step in operation.get(key, "").split("/")[1:-1]:
            place = int(step) if isinstance(node, list) and step.isdecimal() else _unescaped(step)
            child = _child(node, place)
            if not isinstance(child, dict | list):
                break
            node[place] = node = child.copy()
    return out


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _bounded(body: Body) -> bool:
    """Whether copies into copies have stayed within what a real object can hold."""
    level: list[Any] = [body]
    seen = 0
    for _ in range(2 * _DEEPEST):
        seen += len(level)
        if seen > _LARGEST:
            return False
        level = [child for node in level for child in _children(node)]
        if not level:
            return True
    return False


def _children(node: Any) -> Sequence[Any]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else ()
