"""The text of HyperConverged's JSON patch annotation, read as strictly as HyperConverged applies it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from renderer.model import Body

_MEND = "Mend it: HyperConverged refuses the object as it is."
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_VALUED = ("add", "replace", "test")
_SPEC = "/spec/"


class Invalid(Exception):
    """Why the list cannot be applied, or not be kept as it is."""

    def __init__(self, reason: str, help: str = _MEND, code: str = "base/unreadable") -> None:
        super().__init__(reason)
        self.help = help
        self.code = code


class _Fault(str):
    """Stands for a value that cannot be written again as it was read, and says why."""


def parse(text: str) -> list[Body]:
    """The operations.  Raises `Invalid`.

    Source of the rules: HyperConverged, applyPatchToSpec: known operations on paths below /spec/.
    """
    try:
        parsed = json.loads(
            text, parse_constant=_not_json, parse_float=_float, parse_int=_int, object_pairs_hook=_object
        )
    except (ValueError, RecursionError) as error:
        where = ""
        if isinstance(error, json.JSONDecodeError):
            where = f", from its line {error.lineno}, column {error.colno} on"
        help = "Write the value for ${…}: it is filled in only after rendering." if "${" in text else _MEND
        raise Invalid(f"is not valid JSON{where}", help) from None
    if parsed is None:
        return []
    if not isinstance(parsed, list):
        raise Invalid("is not a list of operations", "Write a JSON list of operations.")
    for number, operation in enumerate(parsed, start=1):
        fault = next(_faults(operation), "")
        reason = fault or _malformed(operation)
        if reason:
            help = "Write it in another way: it could not be kept as it is." if fault else _MEND
            raise Invalid(f"is not valid in operation {number}: {reason}", help)
    _refuse_repeated(parsed)
    return parsed


def _malformed(operation: Any) -> str:
    if not isinstance(operation, dict):
        return "it is not a mapping with op and path"
    op, path, source = operation.get("op"), operation.get("path"), operation.get("from")
    if op not in _OPERATIONS:
        return f"op is {_shown(op)}, not one of {', '.join(_OPERATIONS)}" if "op" in operation else "it has no op"
    if not isinstance(path, str) or not path.startswith(_SPEC):
        return f"path is {_shown(path)}, not below {_SPEC}" if "path" in operation else "it has no path"
    if op in ("move", "copy"):
        return "" if isinstance(source, str) and source.startswith("/") else "it has no from that begins with /"
    if "from" in operation:
        return f"{op} has no from"
    return "" if op not in _VALUED or "value" in operation else "it has no value"


def _refuse_repeated(operations: Sequence[Body]) -> None:
    added: dict[str, int] = {}
    for number, operation in enumerate(operations, start=1):
        path = operation["path"]
        last = path.rpartition("/")[2]
        if operation["op"] != "add" or last == "-" or last.isdecimal():
            continue
        if path in added:
            raise Invalid(
                f"adds {path} twice, in operations {added[path]} and {number}: the second undoes the first",
                "Make one operation of the two.",
                "base/conflict",
            )
        added[path] = number


def _faults(value: Any) -> Iterator[str]:
    if isinstance(value, _Fault):
        yield str(value)
    elif isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield "a text in it holds half of a surrogate pair, which is no character"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _faults(key)
            yield from _faults(item)
    elif isinstance(value, list):
        for item in value:
            yield from _faults(item)


def _object(pairs: Sequence[tuple[str, Any]]) -> Any:
    out = dict(pairs)
    if len(out) == len(pairs):
        return out
    keys = [key for key, _ in pairs]
    repeated = next(key for key in keys if keys.count(key) > 1)
    return _Fault(f"the key {repeated!a} stands twice in one mapping")


def _float(text: str) -> Any:
    number = float(text)
    return number if Decimal(text) == Decimal(repr(number)) else _lost(text)


def _int(text: str) -> Any:
    # Go reads a number without a type as a float64, and one in a field of KubeVirt as an int64.
    return int(text) if len(text) < 20 and -(1 << 63) <= int(text) < 1 << 63 else _lost(text)


def _lost(text: str) -> _Fault:
    return _Fault(f"the number {text if len(text) <= 30 else text[:27] + '...'} cannot be kept exactly")


def _not_json(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value if value.isprintable() and 0 < len(value) <= 60 else "no such text"
    return {dict: "a mapping", list: "a list", type(None): "null", bool: "a boolean"}.get(type(value), "a number")
