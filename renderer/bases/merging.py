"""Merge patches as kustomize applies them to custom resources."""

from __future__ import annotations

from typing import Any

from renderer.model import Body, Path


class Unmergeable(Exception):
    """Two values of different kinds at one path, or a directive that only kustomize can follow."""

    def __init__(self, reason: str, path: Path) -> None:
        super().__init__(reason)
        self.path = path


def merge(body: Body, patch: Body, path: Path = ()) -> Body:
    """A new object: mappings merge, null removes, lists and scalars are replaced.  Raises `Unmergeable`.

    kustomize knows no schema of custom resources, so there are no list keys; unlike RFC 7386 it refuses to
    replace a mapping by a list or a scalar.  Tried with kustomize 5.8; source: kyaml/yaml/merge2.
    """
    out = dict(body)
    for key, value in patch.items():
        below = (*path, key)
        if key.startswith("$"):
            raise Unmergeable(f"the directive {key} cannot be followed without kustomize", below)
        if value is None:
            out.pop(key, None)
        else:
            out[key] = _merged(out.get(key), value, below)
    return out


def _merged(old: Any, new: Any, path: Path) -> Any:
    if old is not None and _kind(old) != _kind(new):
        raise Unmergeable(f"kustomize cannot merge {_kind(new)} into {_kind(old)}", path)
    if isinstance(new, dict):
        return merge(old or {}, new, path)
    if isinstance(old, str) and isinstance(new, int | float):
        raise Unmergeable("kustomize makes a number a text where it replaces a text in quotes", path)
    if isinstance(new, list):
        _refuse_directives(new, path)
    return new


def _refuse_directives(values: list[Any], path: Path) -> None:
    for index, value in enumerate(values):
        if isinstance(value, dict) and "$patch" in value:
            raise Unmergeable("the directive $patch cannot be followed without kustomize", (*path, index, "$patch"))


def _kind(value: Any) -> str:
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a single value"
