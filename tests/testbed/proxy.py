"""A proxy in front of a real server that answers, or cuts, or lets something happen before chosen requests.

All others pass through: what the server itself cannot be brought to do is done in its name, and nothing else.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from tests.testbed.access import Access

_SECONDS = 60

Connect = Callable[[], http.client.HTTPConnection]
Action = Callable[["Exchange"], None]
Rule = Callable[["Exchange", int], Action | None]


class Exchange:
    """A request, and what can be done about it: exactly one of `forward`, `answer` and `cut`."""

    def __init__(self, handler: BaseHTTPRequestHandler, connect: Connect) -> None:
        self._handler, self._connect = handler, connect
        self.method, self.path = handler.command, handler.path
        self.token = handler.headers.get("Authorization", "")
        self.body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))

    def forward(self) -> None:
        self.answer(*self.ask())

    def ask(self) -> tuple[int, dict[str, str], bytes]:
        """What the real server says."""
        passed = ("Authorization", "Content-Type", "Accept", "User-Agent")
        headers = {name: value for name in passed if (value := self._handler.headers.get(name))}
        with closing(self._connect()) as wire:
            wire.request(self.method, self.path, self.body or None, headers)
            answer = wire.getresponse()
            return answer.status, {"Content-Type": answer.headers.get("Content-Type", "")}, answer.read()

    def answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self._handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self._handler.send_header(name, value)
        self._handler.end_headers()
        self._handler.wfile.write(body)

    def cut(self) -> None:
        """The connection ends without an answer."""
        self._handler.close_connection = True
        self._handler.connection.shutdown(socket.SHUT_RDWR)


class Proxy:
    """Listens on loopback.  `rule` gives the action for a request and how often its method and path came before."""

    def __init__(self, connect: Connect, certificate: Path | None = None) -> None:
        """By HTTPS where there is a certificate with its key beside it."""
        self.rule: Rule = lambda _exchange, _count: None
        self.seen: Counter[str] = Counter()
        """Requests by method and path without its query."""
        proxy, lock = self, Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                exchange = Exchange(self, connect)
                name = f"{exchange.method} {exchange.path.partition('?')[0]}"
                with lock:
                    count = proxy.seen[name]
                    proxy.seen[name] += 1
                (proxy.rule(exchange, count) or Exchange.forward)(exchange)

            do_GET = do_PATCH = do_POST = do_PUT = handle_any  # noqa: N815  (names of the base class)

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, certificate.with_suffix(".key"))
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def say(status: int, message: str = "so it is said", **headers: str) -> Action:
    """An answer in the form of the API server's own; underscores in names of headers stand for hyphens."""
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.answer(status, {"Content-Type": "application/json", **named}, body.encode())


def swallow(exchange: Exchange) -> None:
    """The real server does it, and its answer is lost."""
    exchange.ask()
    exchange.cut()


def after(happening: Callable[[], object]) -> Action:
    """Something happens, then the request passes."""

    def action(exchange: Exchange) -> None:
        happening()
        exchange.forward()

    return action


def connection(upstream: Access) -> http.client.HTTPSConnection:
    """To an API server."""
    context = ssl.create_default_context(cafile=str(upstream.authority))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the server makes its certificate by itself
    return http.client.HTTPSConnection("127.0.0.1", upstream.port, timeout=_SECONDS, context=context)


@contextmanager
def between(
    upstream: Access, folder: Path, *, token: str | None = None, token_file: Path | None = None
) -> Iterator[tuple[Proxy, Path]]:
    """A proxy, and a kubeconfig of that user that goes through it."""
    proxy = Proxy(lambda: connection(upstream))
    user = {"tokenFile": str(token_file)} if token_file else {"token": token or upstream.token}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bed", "cluster": {"server": proxy.url}}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "user"}}],
        "current-context": "bed",
    }
    kubeconfig = folder / f"proxy-{id(proxy)}.kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    try:
        yield proxy, kubeconfig
    finally:
        proxy.close()
