"""A copy of what a base is built from, in which our component does nothing: what the base is without us.

Only what kustomize may read is copied: it reads files below the folders that it enters, and every folder that it
enters is named by a text in a kustomization file.
"""

from __future__ import annotations

import os
import posixpath
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from renderer import documents

_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_NOTHING = b"apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: []\n"


@contextmanager
def without_component(root: Path, base: str, component: str) -> Iterator[Path]:
    """A temporary copy of `root`, as far as the base needs it, with an empty component; it is gone afterwards.

    `base` and `component` are folders, from the root.  What is left out because nothing seems to name it makes the
    build fail, never pass.  Raises `OSError`.
    """
    with tempfile.TemporaryDirectory(prefix="kubevirt-policy-") as place:
        copy = Path(place).resolve()
        for folder in _entered(root, base):
            _copy(root, copy, folder)
        nothing = copy / component
        shutil.rmtree(nothing, ignore_errors=True)
        nothing.mkdir(parents=True)
        (nothing / _NAMES[0]).write_bytes(_NOTHING)
        yield copy


def _entered(root: Path, base: str) -> list[str]:
    """The folders that kustomize may enter, starting at the base."""
    found, left = [base], [base]
    while left:
        folder = left.pop()
        for text in _texts(root, folder):
            path = posixpath.normpath(posixpath.join(folder, text))
            if path not in found and not path.startswith(("../", "/")) and path != ".." and _is_folder(root, path):
                found.append(path)
                left.append(path)
    return found


def _is_folder(root: Path, path: str) -> bool:
    return len(path) < 4096 and "\0" not in path and os.path.isdir(root / path)  # noqa: PTH112 - never raises


def _texts(root: Path, folder: str) -> Iterator[str]:
    for name in _NAMES:
        place = root / folder / name
        if place.is_file():
            for document in documents.read_foreign(name, place.read_bytes()).documents:
                yield from _strings(document.data)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _copy(root: Path, copy: Path, folder: str) -> None:
    def skipped(place: str, names: list[str]) -> list[str]:
        return [name for name in names if name == ".git" or not _plain(Path(place, name))]

    shutil.copytree(root / folder, copy / folder, symlinks=True, ignore=skipped, dirs_exist_ok=True)


def _plain(path: Path) -> bool:
    return path.is_symlink() or path.is_dir() or path.is_file()
