"""Why and when the job is to end what it does."""

from __future__ import annotations

import threading


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
