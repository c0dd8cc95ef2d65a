"""Reads the files of a work tree, and nothing outside it."""

# A path object for each file would cost more than the system calls on it.
# ruff: noqa: PTH112, PTH116, PTH206
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from renderer.model import Entry, TreeError

MAX_BYTES = 16 << 20
"""The largest file that is ever loaded; callers have tighter limits of their own."""
MAX_DEPTH = 64
"""Folders nested deeper are not entered: whoever walks the tree may then do so by recursion."""

# Without O_NONBLOCK, opening a named pipe would wait for a writer that never comes.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 16
_DOWNWARDS = "paths go from the root of the repository downwards, without '..', '.' or a leading '/'"
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


@dataclass(frozen=True, slots=True)
class DiskTree:
    """The files below `root`, as `renderer.model.Tree`, without `.git`, which is no part of a commit either.

    Links to files of the tree are followed; links to folders are not: `renderer.model.walk` could run in circles.
    """

    root: Path
    # That no link stands on the way to a folder is looked up once: it costs as much as reading a small file.
    _places: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def list(self, folder: str) -> Sequence[Entry]:
        """The entries of a folder, sorted by name; none where the folder does not exist.  Raises `TreeError`."""
        try:
            with os.scandir(self.place(folder)) as found:
                entries = [self._entry(item, folder) for item in found if item.name.lower() != ".git"]
        except (OSError, TreeError) as error:
            reason = explained(error) if isinstance(error, OSError) else error
            if reason.missing:
                return ()
            raise reason from None
        return sorted(entries, key=attrgetter("name"))

    def read(self, path: str, *, limit: int = MAX_BYTES) -> bytes:
        """The bytes of a file.  Raises `TreeError`, also where the file has more than `limit` bytes."""
        try:
            folder, name = _split(path)
            place = f"{self.place(folder)}/{name}"
            try:
                return load(place, limit=limit)
            except OSError as error:
                if not is_link(error):
                    raise
            return load(self._follow(place), limit=limit)
        except OSError as error:
            raise explained(error) from None

    def place(self, folder: str) -> str:
        """Where a folder lies on disk, with no link on the way below the root.  Raises `TreeError`."""
        known = self._places.get(folder)
        return self._enter(folder) if known is None else known

    def _enter(self, folder: str) -> str:
        if folder.count("/") >= MAX_DEPTH:
            raise TreeError(f"folders are nested more than {MAX_DEPTH} deep")
        place = os.fspath(self.root)
        if folder:
            parent, name = _split(folder)
            place = f"{self.place(parent)}/{name}"
            _refuse_other_than_folder(place, folder)
        self._places[folder] = place
        return place

    def _entry(self, item: os.DirEntry[str], folder: str) -> Entry:
        if not item.name.isprintable():
            return Entry(ascii(item.name)[1:-1], folder=False, problem="its name has characters that cannot be printed")
        if item.is_file(follow_symlinks=False):
            return Entry(item.name, folder=False)
        if item.is_dir(follow_symlinks=False):
            return Entry(item.name, folder=True, problem=_obstacle(item.path, folder))
        if not item.is_symlink():
            mode = item.stat(follow_symlinks=False).st_mode
            return Entry(item.name, folder=False, problem=f"{kind(mode)}, not a file")
        try:
            self._follow(item.path)
        except TreeError as error:
            return Entry(item.name, folder=os.path.isdir(item.path), problem=str(error))
        return Entry(item.name, folder=False)

    def _follow(self, place: str) -> str:
        """Where a link leads.  Raises `TreeError` unless that is a file of this tree."""
        try:
            target = os.path.realpath(place, strict=True)
            inside = _inside(target, os.path.realpath(self.root))
            mode = os.stat(target).st_mode if inside else 0
        except OSError as error:
            if explained(error).missing:
                raise TreeError("a link to nothing") from None
            raise TreeError("a link that leads in a circle") if is_link(error) else explained(error) from None
        if not inside:
            raise TreeError("a link that leads out of the repository")
        if not stat.S_ISREG(mode):
            raise TreeError(f"a link to {kind(mode)}")
        return target


def load(place: str, *, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file.  Never waits, and never follows a link: `OSError`, see `is_link`.

    Raises `TreeError` for what is no regular file, and for more than `limit` bytes, which are then not read.
    """
    try:
        handle = os.open(place, _FLAGS)
    except ValueError:
        raise TreeError("not a file name") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise TreeError(f"{kind(status.st_mode)}, not a file")
        _refuse_large(status.st_size, limit)
        data = os.read(handle, status.st_size + 1)
        # Rarely: the file grows while it is read, or its file system gives less than was asked for.
        while len(data) != status.st_size and (more := os.read(handle, _CHUNK)):
            data += more
            _refuse_large(len(data), limit)
        return data
    finally:
        os.close(handle)


def is_link(error: OSError) -> bool:
    """Whether opening failed because a link stands there; the BSDs have a word of their own for it."""
    return error.errno in (errno.ELOOP, errno.EMLINK)


def explained(error: OSError) -> TreeError:
    """A failed system call in words for people."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return TreeError("no such file", missing=True)
    reasons = {
        errno.EACCES: "permission denied",
        errno.ELOOP: "a link",
        errno.ENAMETOOLONG: "the name is too long",
        errno.ENXIO: "a socket or device, not a file",
    }
    return TreeError(reasons.get(error.errno or 0) or error.strerror or str(error))


def kind(mode: int) -> str:
    """What stands there, for a message: `a folder`, `a named pipe`…"""
    return next((name for test, name in _KINDS if test(mode)), "a device")


def _inside(target: str, root: str) -> bool:
    return os.path.commonpath((root, target)) == root and ".git" not in target[len(root) :].split(os.sep)


def _split(path: str) -> tuple[str, str]:
    folder, slash, name = path.rpartition("/")
    if name in ("", ".", "..") or "\0" in name or (slash and not folder):
        raise TreeError(_DOWNWARDS)
    if name.lower() == ".git":
        raise TreeError(".git is not part of the files of a commit")
    return folder, name


def _refuse_other_than_folder(place: str, folder: str) -> None:
    try:
        mode = os.lstat(place).st_mode
    except OSError as error:
        raise explained(error) from None
    except ValueError:
        raise TreeError("not a file name") from None
    if stat.S_ISLNK(mode):
        raise TreeError(f"{folder} is a link, and folders are not followed through links: name the folder itself")
    if not stat.S_ISDIR(mode):
        raise TreeError(f"{folder} is not a folder")


def _refuse_large(size: int, limit: int) -> None:
    if size > limit:
        raise TreeError(f"the file has {size} bytes; at most {limit} are read", code="policy/limit")


def _obstacle(place: str, parent: str) -> str:
    if not os.access(place, os.R_OK | os.X_OK):
        return "permission denied"
    return f"folders are nested more than {MAX_DEPTH} deep" if parent.count("/") >= MAX_DEPTH - 1 else ""
