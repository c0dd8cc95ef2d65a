"""One writer at a time: a lock on the output folder itself, which ends with its process and leaves no file behind."""

# A path object for each file would cost more than the system calls on it.
# ruff: noqa: PTH116
from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

_PAUSE = 0.02


@contextmanager
def locked(place: str, *, wait: float) -> Iterator[bool]:
    """Holds the lock of the folder at `place`; False where its file system has none (some network mounts).

    Raises `TimeoutError` once another process has held it for `wait` seconds, and `OSError`.
    """
    deadline = time.monotonic() + wait
    while True:
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            held = _take(handle, deadline)
            # Somebody may have replaced the folder while we waited: then this is the lock of one that is gone.
            if os.path.samestat(os.fstat(handle), os.stat(place)):
                yield held
                return
        finally:
            os.close(handle)


def _take(handle: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                message = "another kubevirt-policy is writing there; wait until it is done, or end it"
                raise TimeoutError(errno.ETIMEDOUT, message) from None
            time.sleep(_PAUSE)
        except OSError:
            return False
