"""What both clients share: whom they trust, and that every request comes to an end."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Generic, TypeVar

from urllib3 import HTTPConnectionPool, HTTPResponse, HTTPSConnectionPool, PoolManager, ProxyManager
from urllib3.connection import HTTPConnection, HTTPSConnection

from renderer.softtaint.stop import Stop, Stopped

T = TypeVar("T")

_LOOK: Final = 0.2
"""Seconds between looks at whether to stop."""


def lenient(context: ssl.SSLContext) -> ssl.SSLContext:
    """Without what Python 3.13 demands by default: service CAs, and those of EKS, lack identifiers of their keys."""
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    return context


def within(work: Callable[[], T], seconds: float, stop: Stop | None = None, grace: float = 0.0) -> T:
    """What the work gives or raises.  Raises `TimeoutError` after that time, and `Stopped` that long after the stop.

    Socket timeouts bound no more than the next byte, and nothing bounds a resolver: so a thread has it.
    """
    call = _Call(work)
    call.start()
    end, stopping = time.monotonic() + seconds, False
    while not call.done.wait(max(min(_LOOK, end - time.monotonic()), 0)):
        if not stopping and stop is not None and stop.is_set():
            stopping, end = True, min(end, time.monotonic() + grace)
        if time.monotonic() >= end:
            call.cut()
            raise Stopped if stopping else TimeoutError(f"no whole answer within {seconds:.3g} s")
    return call.outcome()


def severable(manager: PoolManager) -> None:
    """Lets `within` cut the connections that it makes; those through SOCKS are of another kind."""
    if type(manager) in (PoolManager, ProxyManager):
        manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}


class _Call(threading.Thread, Generic[T]):
    """A request under way."""

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(name="request", daemon=True)
        self._work = work
        self._found: list[T] = []
        self._error: BaseException | None = None
        self.done = threading.Event()
        self._socket: socket.socket | None = None
        self._over = False

    def run(self) -> None:
        try:
            self._found.append(self._work())
        except BaseException as error:  # noqa: BLE001  (raised where it is waited for)
            self._error = error
        finally:
            self.done.set()

    def outcome(self) -> T:
        if self._error is not None:
            raise self._error
        return self._found[0]

    def cut(self) -> None:
        """Ends the thread too, which otherwise may read for as long as a server trickles."""
        self._over = True
        self._sever()

    def uses(self, wire: socket.socket) -> None:
        """It waits for an answer there; if nobody waits for it any more, there will be none."""
        self._socket = wire
        if self._over:
            self._sever()

    def _sever(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)


def _uses(connection: HTTPConnection) -> None:
    call = threading.current_thread()
    if isinstance(call, _Call) and connection.sock is not None:
        call.uses(connection.sock)


class _Connection(HTTPConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        _uses(self)
        return super().getresponse()


class _SecureConnection(HTTPSConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]
        _uses(self)
        return super().getresponse()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection
