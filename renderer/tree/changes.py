"""Tells what on disk differs from what was rendered, and whose each file is."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from operator import attrgetter
from pathlib import Path
from typing import assert_never

from renderer.header import Ownership, ownership
from renderer.model import TreeError
from renderer.tree.disk import DiskTree, explained, kind, load
from renderer.values import Value

STAGING = ".staging-"
"""How the names of staging folders begin.  What a killed run left in one is no output."""

_BOM = "\ufeff"


class State(StrEnum):
    """How a path below the output folder differs from what was rendered."""

    MISSING = "missing"
    STALE = "stale"
    EDITED = "edited"
    ORPHANED = "orphaned"
    FOREIGN = "foreign"
    NEWER = "newer"


class Change(Value, frozen=True):
    """One path that differs: its text on disk, if it is ours, and as rendered, both with LF; None where there is none.

    `blocking`: it stands where a file must be written but may not be replaced.  `reason`: why it counts as foreign.
    """

    path: str
    state: State
    before: str | None = None
    after: str | None = None
    reason: str = ""
    blocking: bool = False


class Comparison(Value, frozen=True):
    """What differs, in order of path; and our own files that lie on disk with CRLF line ends, equal or not."""

    changes: tuple[Change, ...] = ()
    crlf: tuple[str, ...] = ()

    @property
    def blocking(self) -> tuple[Change, ...]:
        """What must be moved away by hand, or be written by a newer version, before anything can be written."""
        return tuple(change for change in self.changes if change.blocking)


def compare(
    root: Path, folder: str, expected: Mapping[str, str], *, clusters: Collection[str] | None = None
) -> Comparison:
    """Compares the files below `folder` with `expected`, which maps paths from the root to whole texts.

    With `clusters`, only `folder/<cluster>/…` and `folder/_*/<cluster>…` are looked at.
    Raises `TreeError` where `folder` itself is a link, or no folder, or cannot be read.
    """
    names = None if clusters is None else frozenset(clusters)
    wanted = dict(expected)
    if names is not None:
        wanted = {path: text for path, text in expected.items() if _covered(path[len(folder) + 1 :], names)}
    nearest = {path.rpartition("/")[0] for path in wanted}
    folders = nearest | {parent for path in nearest for parent in parents(path)}
    changes, crlf, seen = [], [], set()
    for found in _walk(root, folder, names=names, wanted=wanted):
        seen.add(found.path)
        change = _judged(found, wanted.get(found.path), on_the_way=found.path in folders)
        if change:
            changes.append(change)
        if found.crlf and (not change or change.state is not State.FOREIGN):
            crlf.append(found.path)
    changes += _missing(wanted, seen, barred={change.path for change in changes if change.blocking})
    return Comparison(tuple(sorted(changes, key=attrgetter("path"))), tuple(sorted(crlf)))


def parents(path: str) -> Iterator[str]:
    """The folders on the way to a path, from the nearest up."""
    while (end := path.rfind("/")) > 0:
        path = path[:end]
        yield path


class _Found(Value, frozen=True):
    """What stands at a path: a text with LF, or what keeps us from reading one."""

    path: str
    text: str = ""
    obstacle: str = ""
    crlf: bool = False


def _covered(below: str, clusters: frozenset[str]) -> bool:
    """Whether a path, taken from the output folder down, belongs to the clusters asked for, or leads to what does."""
    first, _, rest = below.partition("/")
    if first.startswith("_"):
        return not rest or rest.partition("/")[0].partition(".")[0] in clusters
    return first in clusters


def _walk(root: Path, top: str, *, names: frozenset[str] | None, wanted: Collection[str]) -> Iterator[_Found]:
    """All that is no folder, and the folders that stand where a file is wanted or that cannot be entered."""
    left = _top(root, top)
    while left:
        folder, place = left.pop()
        try:
            items = _items(place)
        except TreeError as error:
            yield _Found(folder, obstacle=str(error))
            continue
        for item in items:
            path = f"{folder}/{item.name}"
            if names is not None and not _covered(path[len(top) + 1 :], names):
                continue
            if item.is_dir(follow_symlinks=False) and path not in wanted:
                if folder != top or not item.name.startswith(STAGING):
                    left.append((path, item.path))
            elif found := _look(item, path):
                yield found


def _top(root: Path, top: str) -> list[tuple[str, str]]:
    try:
        place = DiskTree(root).place(top)
        _items(place)
    except TreeError as error:
        if error.missing:
            return []
        raise
    return [(top, place)]


def _items(place: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as items:
            return list(items)
    except OSError as error:
        if explained(error).missing:  # another process has just removed it
            return []
        raise explained(error) from None


def _look(item: os.DirEntry[str], path: str) -> _Found | None:
    """What a name holds; None if it is gone by now."""
    if not path.isprintable():
        return _Found(ascii(path)[1:-1], obstacle="a name with characters that cannot be printed")
    try:
        if not item.is_file(follow_symlinks=False):
            return _Found(path, obstacle=kind(item.stat(follow_symlinks=False).st_mode))
        text = load(item.path).decode()
    except UnicodeDecodeError:
        return _Found(path, obstacle="not UTF-8")
    except TreeError as error:
        return _Found(path, obstacle=str(error))
    except OSError as error:
        return None if explained(error).missing else _Found(path, obstacle=str(explained(error)))
    crlf = "\r\n" in text
    return _Found(path, text.replace("\r\n", "\n") if crlf else text, crlf=crlf)


def _judged(found: _Found, after: str | None, *, on_the_way: bool) -> Change | None:
    """How what stands at a path differs from what is wanted there; `on_the_way` if a folder is needed there."""
    obstacle = found.obstacle or ("a file where a folder is needed" if on_the_way else "")
    blocking = after is not None or on_the_way
    if obstacle:
        return Change(found.path, State.FOREIGN, after=after, reason=obstacle, blocking=blocking)
    if found.text == after:
        return None
    state = _state(found.text, wanted=after is not None)
    if state is State.FOREIGN:
        return Change(found.path, state, after=after, reason="no header of kubevirt-policy", blocking=blocking)
    return Change(found.path, state, before=found.text, after=after, blocking=state is State.NEWER)


def _state(text: str, *, wanted: bool) -> State:
    if wanted and not text:  # cut short when the machine went down: there is nothing in it to lose
        return State.EDITED
    owner = ownership(text.removeprefix(_BOM))
    match owner:
        case Ownership.FOREIGN:
            return State.FOREIGN
        case Ownership.NEWER:
            return State.NEWER
        case Ownership.INTACT | Ownership.EDITED if not wanted:
            return State.ORPHANED
        case Ownership.INTACT:
            return State.EDITED if text.startswith(_BOM) else State.STALE
        case Ownership.EDITED:
            return State.EDITED
        case _:
            assert_never(owner)


def _missing(wanted: Mapping[str, str], seen: Collection[str], *, barred: Collection[str]) -> Iterator[Change]:
    """The files that are not there, but for those whose folder cannot be made: what bars it is told once."""
    for path, text in wanted.items():
        if path not in seen and not any(parent in barred for parent in parents(path)):
            yield Change(path, State.MISSING, after=text)
