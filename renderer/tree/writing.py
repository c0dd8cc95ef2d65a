"""Brings the output folder to what was rendered: staged first, then renamed in, whole files only."""

# A path object for each file would cost more than the system calls on it.
# ruff: noqa: PTH102, PTH105, PTH106, PTH108, PTH123, PTH208
from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from renderer.model import TreeError
from renderer.tree.changes import STAGING, Change, Comparison, State, compare, parents
from renderer.tree.disk import MAX_DEPTH, DiskTree, explained, load
from renderer.tree.lock import locked
from renderer.values import Value
from renderer.words import listed

_ODD = frozenset(("", ".", ".."))
_SHOWN = 5


class CannotWrite(Exception):
    """The message says why, and what to do.  The files are as they were, unless it says that they are not.

    `blocking`: what stands in the way.
    """

    def __init__(self, message: str, *, blocking: tuple[Change, ...] = ()) -> None:
        super().__init__(message)
        self.blocking = blocking


def write(
    root: Path,
    folder: str,
    expected: Mapping[str, str],
    *,
    clusters: Collection[str] | None = None,
    wait: float = 60.0,
) -> Comparison:
    """Makes the files below `folder` equal to `expected` and returns what had to change.

    The comparison is made anew under the lock, so that two renders at once end in exactly one of their results.
    Nothing is touched where nothing differs.  Foreign files that are not in the way stay, and are in the result.
    Raises `CannotWrite`: a file in the way, a link, no permission, a full disk, or no lock within `wait` seconds.
    """
    for path in expected:
        _refuse_odd(path, folder)
    try:
        if not expected and _absent(root, folder):
            return Comparison()
        place = _made(root, folder)
        with locked(place, wait=wait) as alone:
            if alone:
                _sweep(place)
            found = compare(root, folder, expected, clusters=clusters)
            _refuse_blocked(found.blocking)
            if changes := [change for change in found.changes if change.state is not State.FOREIGN]:
                _apply(place, folder, changes)
            return found
    except TreeError as error:
        raise CannotWrite(f"{folder} cannot be written: {error}") from error
    except OSError as error:
        raise CannotWrite(f"{folder} is left as it was: {_told(error, root)}") from error


class _Move(Value, frozen=True):
    """The rename that puts one piece of the new state in place, and the one that takes it back; both from, to."""

    do: tuple[str, str]
    undo: tuple[str, str]


def _apply(place: str, folder: str, changes: list[Change]) -> None:
    with _staging(place) as staging:
        moves = _written([change for change in changes if change.after is not None], place, folder, staging)
        for number, path in enumerate(_gone(changes, place, folder)):
            target, aside = place + path[len(folder) :], f"{staging}/gone-{number}"
            moves.append(_Move(do=(target, aside), undo=(aside, target)))
        _swap(moves, folder)


@contextmanager
def _staging(place: str) -> Iterator[str]:
    """A folder on the same file system, for as long as it takes; Git does not see what is in it."""
    staging = f"{place}/{STAGING}{os.urandom(6).hex()}"
    os.mkdir(staging, 0o700)
    try:
        _put(f"{staging}/.gitignore", "*\n")
        yield staging
    finally:
        _remove(staging)


def _written(changes: Iterable[Change], place: str, folder: str, staging: str) -> list[_Move]:
    """Writes all new texts, and a second name for each old one: moving them takes no more space."""
    moves: dict[str, _Move] = {}
    made, present = {staging}, {""}
    for number, change in enumerate(changes):
        below = change.path[len(folder) :]
        _make_parents(f"{staging}/new{below}", made)
        _put(f"{staging}/new{below}", change.after or "")
        piece = below if change.before is not None else _piece(below, place, present)
        fresh, target, aside = f"{staging}/new{piece}", place + piece, f"{staging}/old-{number}"
        if change.before is None:
            moves[piece] = _Move(do=(fresh, target), undo=(target, fresh))
        else:
            _keep(target, aside)
            moves[piece] = _Move(do=(fresh, target), undo=(aside, target))
    return list(moves.values())


def _piece(below: str, place: str, present: set[str]) -> str:
    """The highest folder on the way to a file that is not there yet, which is then moved in whole; or the file."""
    for parent in reversed(list(parents(below))):
        if parent not in present:
            if not os.path.lexists(place + parent):
                return parent
            present.add(parent)
    return below


def _gone(changes: Iterable[Change], place: str, folder: str) -> list[str]:
    """What to remove: the orphans, but a folder in one piece where nothing else is or will be in it."""
    gone = {change.path for change in changes if change.after is None}
    kept = {parent for change in changes if change.after is not None for parent in parents(change.path)}
    emptied = {parent for path in gone for parent in parents(path) if len(parent) > len(folder)} - kept
    for parent in sorted(emptied, key=len, reverse=True):
        if all(f"{parent}/{name}" in gone for name in os.listdir(place + parent[len(folder) :])):
            gone.add(parent)
    return sorted(path for path in gone if path.rpartition("/")[0] not in gone)


def _swap(moves: Iterable[_Move], folder: str) -> None:
    begun = []
    try:
        for move in moves:
            begun.append(move)
            os.replace(*move.do)
    except BaseException as error:
        if stuck := [move for move in reversed(begun) if not _undone(move)]:
            message = (
                f"{folder} is partly old and partly new: {len(stuck)} changes could not be taken back; render again"
            )
            raise CannotWrite(message) from error
        raise


def _undone(move: _Move) -> bool:
    try:
        os.replace(*move.undo)
    except FileNotFoundError:  # the interrupted move itself, which was not made
        return True
    except OSError:
        return False
    return True


def _put(place: str, text: str) -> None:
    # The mode follows the umask, as in a Git checkout, which records no more of it than that nothing is executable.
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        data = memoryview(text.encode())
        while data:
            data = data[os.write(handle, data) :]
    finally:
        os.close(handle)


def _keep(place: str, aside: str) -> None:
    try:
        os.link(place, aside)
    except OSError:  # a file system without hard links, or a file of somebody else
        with open(aside, "xb") as copy:
            copy.write(load(place))


def _make_parents(path: str, made: set[str]) -> None:
    parent = path[: path.rfind("/")]
    if parent not in made:
        _make_parents(parent, made)
        os.mkdir(parent)
        made.add(parent)


def _absent(root: Path, folder: str) -> bool:
    try:
        DiskTree(root).place(folder)
    except TreeError as error:
        if error.missing:
            return True
        raise
    return False


def _made(root: Path, folder: str) -> str:
    """Where the output folder lies on disk, made if need be, with no link on the way."""
    for path in (*reversed(list(parents(folder))), folder):
        try:
            DiskTree(root).place(path)
        except TreeError as error:
            if not error.missing:
                raise
            with suppress(FileExistsError):
                os.mkdir(root / path)
    return DiskTree(root).place(folder)


def _sweep(place: str) -> None:
    """Removes what a killed run has left; whoever holds the lock is the only one that can have a staging folder."""
    with os.scandir(place) as items:
        left = [item.path for item in items if item.name.startswith(STAGING) and item.is_dir(follow_symlinks=False)]
    for staging in left:
        _remove(staging)


def _remove(place: str) -> None:
    """Removes a staging folder as far as that is possible; what remains is hidden from Git and gets swept some day."""
    folders = [place]
    with suppress(OSError):
        for folder in folders:
            with os.scandir(folder) as items:
                for item in list(items):
                    if item.is_dir(follow_symlinks=False):
                        folders.append(item.path)
                    else:
                        os.unlink(item.path)
        for folder in reversed(folders):
            os.rmdir(folder)


def _refuse_odd(path: str, folder: str) -> None:
    """Whatever a path is made of, it names a file below the output folder, on every platform."""
    names = path[len(folder) + 1 :].split("/")
    plain = path.isprintable() and "\\" not in path and len(names) <= MAX_DEPTH
    reserved = names[0].startswith(STAGING) or any(name.lower() == ".git" for name in names)
    if not plain or reserved or not path.startswith(f"{folder}/") or not _ODD.isdisjoint(names):
        raise CannotWrite(f"{path!r} is no path below {folder}; nothing was written")


def _refuse_blocked(blocking: tuple[Change, ...]) -> None:
    newer = [change.path for change in blocking if change.state is State.NEWER]
    if newer:
        message = f"a newer version of this tool wrote {listed(newer, _SHOWN)}; install that version and render again"
        raise CannotWrite(message, blocking=blocking)
    if blocking:
        names = listed((f"{change.path} ({change.reason})" for change in blocking), _SHOWN)
        raise CannotWrite(f"in the way: {names}; move it away and render again", blocking=blocking)


def _told(error: OSError, root: Path) -> str:
    names = [name for name in (error.filename2, error.filename) if isinstance(name, str)]
    names.sort(key=lambda name: STAGING in name)  # of the two names of a failed move, the one that people know
    return f"{explained(error)}: {os.path.relpath(names[0], root)}" if names else str(explained(error))
