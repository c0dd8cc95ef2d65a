"""Rate limits in a ConfigMap manifest of the repository, kept apart from the policy.

Keys of `data`: `qps` and `burst` for all four components, or `<component>.qps` and `<component>.burst` for
api, controller, handler and webhook.  Values are whole numbers in digits, as text (ConfigMap data is text).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from renderer import documents
from renderer.bases.values import pinned
from renderer.kinds.fields import BURST_MAX, BURST_MIN, QPS_MAX, QPS_MIN, Wrong, wrong_burst, wrong_qps
from renderer.model import Component, Document, Limit, Origin, Problem, Tree, TreeError
from renderer.values import Value, field
from renderer.words import did_you_mean, shown

_NUMBERS: dict[str, tuple[int, int, Callable[[int], Wrong]]] = {
    "qps": (QPS_MIN, QPS_MAX, wrong_qps),
    "burst": (BURST_MIN, BURST_MAX, wrong_burst),
}
_KEYS = [*_NUMBERS, *(f"{component}.{name}" for component in Component for name in _NUMBERS)]
_DIGITS = re.compile(r"0|[1-9][0-9]{0,11}")


class Asked(Value, frozen=True):
    """A limit, and the places of its two numbers."""

    limit: Limit
    qps: Origin
    burst: Origin


class LimitsFile(Value, frozen=True):
    """What the ConfigMap asks for; `shared` tells that one pair stands for all four components."""

    limits: dict[Component, Asked] = field(default_factory=dict)
    shared: bool = False
    problems: list[Problem] = field(default_factory=list)


def read(tree: Tree, path: str, reference: Origin) -> LimitsFile:
    """The limits in the one ConfigMap of a file, or what is wrong, at its place in that file."""
    try:
        found = documents.read_foreign(path, tree.read(path))
    except TreeError as error:
        help = "Give the path of a ConfigMap manifest, from the repository root."
        return LimitsFile(problems=[Problem("rate-limit/config-map", reference, f"{path}: {error}", help)])
    if found.findings:
        first = found.findings[0]
        return LimitsFile(
            problems=[Problem("rate-limit/config-map", pinned(first.position), first.message, first.help)]
        )
    maps = [
        item for item in found.documents if (item.data.get("apiVersion"), item.data.get("kind")) == ("v1", "ConfigMap")
    ]
    if len(maps) != 1:
        message = f"{path} holds {len(maps) or 'no'} ConfigMap{'s, not one' if maps else ''}"
        help = "Keep the limits in a file of their own." if maps else "Give the path of the ConfigMap manifest."
        return LimitsFile(problems=[Problem("rate-limit/config-map", reference, message, help)])
    return _limits(maps[0])


def _limits(config_map: Document) -> LimitsFile:
    data, at = config_map.data.get("data"), Origin(config_map, ("data",))
    if not isinstance(data, dict) or not data:
        help = f"Add data: with {' and '.join(_NUMBERS)}, or with keys such as handler.qps."
        return LimitsFile(problems=[Problem("rate-limit/config-map", at, "the ConfigMap has no data", help)])
    problems = [*_unknown(data, at), *_mixed(data, at)]
    numbers: dict[str, int] = {}
    for key in data.keys() & set(_KEYS):
        number = _number(key, data[key], at.below(key))
        if isinstance(number, Problem):
            problems.append(number)
        else:
            numbers[key] = number
    problems += _halves(data, at)
    if problems:
        return LimitsFile(problems=problems)
    shared = "qps" in numbers
    asked = {
        component: _asked("" if shared else f"{component}.", numbers, at)
        for component in Component
        if shared or f"{component}.qps" in numbers
    }
    return LimitsFile(limits=asked, shared=shared)


def _asked(prefix: str, numbers: dict[str, int], at: Origin) -> Asked:
    limit = Limit(numbers[f"{prefix}qps"], numbers[f"{prefix}burst"])
    return Asked(limit, at.below(f"{prefix}qps"), at.below(f"{prefix}burst"))


def _unknown(data: dict[str, object], at: Origin) -> Iterator[Problem]:
    for key in data.keys() - set(_KEYS):
        help = did_you_mean(str(key), _KEYS) or f"Known keys: {', '.join(_KEYS)}."
        yield Problem(
            "policy/unknown-key", Origin(at.document, (*at.path, key), key=True), f"unknown key {shown(key)}", help
        )


def _mixed(data: dict[str, object], at: Origin) -> Iterator[Problem]:
    if ("qps" in data or "burst" in data) and any(f"{component}." in key for key in data for component in Component):
        message = "the ConfigMap has both one pair for all components and pairs for single ones"
        yield Problem("rate-limit/config-map", at, message, "Keep either qps and burst, or the <component>.… keys.")


def _halves(data: dict[str, object], at: Origin) -> Iterator[Problem]:
    for prefix in ("", *(f"{component}." for component in Component)):
        here = [name for name in _NUMBERS if f"{prefix}{name}" in data]
        if len(here) == 1:
            missing = next(f"{prefix}{name}" for name in _NUMBERS if name not in here)
            other = f"{prefix}{here[0]}"
            place = Origin(at.document, (*at.path, other), key=True)
            yield Problem("policy/missing-key", place, f"{missing} is missing", f'Add {missing}: "…" beside {other}.')


def _number(key: str, value: object, at: Origin) -> int | Problem:
    if not isinstance(value, str):
        return Problem(
            "policy/type", at, f"{key} is not a text: ConfigMap data is text", f'Write {key}: "{shown(value)}".'
        )
    if not _DIGITS.fullmatch(value):
        return Problem(
            "policy/value", at, f"{key} {shown(value)} is not a whole number in digits", 'Write it as in "200".'
        )
    number = int(value)
    lowest, highest, explain = _NUMBERS[key.rpartition(".")[2]]
    if lowest <= number <= highest:
        return number
    wrong = explain(number)
    return Problem(wrong.code, at, wrong.message, wrong.help)
