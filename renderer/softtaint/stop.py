"""Why and when the job is to end what it does."""

from __future__ import annotations

import os
import signal
import threading
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Stopped(Exception):
    """The job is to end, and nothing more was asked."""


class Stop:
    """Set for good by a signal, or until `resume` where the Lease was lost."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.signalled = False
        self.lost = False

    def signal(self) -> None:
        self.signalled = True
        self._event.set()

    def lose(self) -> None:
        self.lost = True
        self._event.set()

    def resume(self) -> None:
        """Forgets that the Lease was lost."""
        self.lost = False
        self._event.clear()
        if self.signalled:  # by a signal that came between
            self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Whether it was set within that time."""
        return self._event.wait(seconds)


def listen(stop: Stop) -> None:
    """From now on SIGTERM and SIGINT end the job.  To be called once, by the main thread.

    A handler of Python runs in the main thread, wherever that is: it could wait for a lock that this very thread holds.
    So the interpreter's own handler writes the number into a pipe, and a thread that holds nothing reads it.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)
    threading.Thread(target=_listen, args=(stop, reading), name="signals", daemon=True).start()


def _listen(stop: Stop, reading: int) -> None:
    while received := os.read(reading, 64):
        if set(received) & set(_SIGNALS):
            stop.signal()
