"""One instant query to Prometheus, bounded in time and in size."""

from __future__ import annotations

import ssl
from pathlib import Path
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError

from renderer.softtaint import config, wire
from renderer.softtaint.stop import Stop
from renderer.softtaint.texts import cut, token

_CONNECT = 10.0
_READ = 30.0
"""Seconds until the answer begins, or goes on."""
_WHOLE = 60.0
"""Seconds until it is there."""
_LIMIT = 16 * 2**20
"""Bytes: more than twice what 10,000 nodes take."""
_ERROR = 400
"""Characters of an error, which may hold what the server said in place of an answer."""
_AGENT = {"User-Agent": config.NAME}


class PrometheusError(Exception):
    """No usable answer; the message says why, with what the server said about it."""


def query(server: config.Prometheus, expression: str, stop: Stop | None = None, seconds: float = _WHOLE) -> bytes:
    """The body of the answer.  Certificates and token are read anew.  Raises `PrometheusError` or `Stopped`.

    `seconds` are for everything, from the name of the server to the last byte.
    """
    try:
        return wire.within(lambda: _query(server, expression), seconds, stop)
    except (HTTPError, OSError, UnicodeError, ValueError) as error:
        raise PrometheusError(f"{server.url}: {cut(str(error), _ERROR)}") from error


def _query(server: config.Prometheus, expression: str) -> bytes:
    headers = dict(_AGENT)
    if server.token_file is not None:
        headers["Authorization"] = f"Bearer {_token(server.token_file)}"
    with _pool(server) as pool:
        return _get(pool, f"{server.url.rstrip('/')}/api/v1/query?{urlencode({'query': expression})}", headers)


def _token(file: str) -> str:
    return token(Path(file).read_bytes().decode(errors="replace"), file)


def _pool(server: config.Prometheus) -> urllib3.PoolManager:
    context = wire.lenient(ssl.create_default_context(cafile=server.ca_file))
    timeout = urllib3.Timeout(connect=_CONNECT, read=_READ)
    pool = urllib3.PoolManager(num_pools=1, timeout=timeout, retries=False, ssl_context=context)
    wire.severable(pool)
    return pool


def _get(pool: urllib3.PoolManager, url: str, headers: dict[str, str]) -> bytes:
    answer = pool.request("GET", url, headers=headers, redirect=False, preload_content=False)
    try:
        body = bytearray()
        while chunk := answer.read1(2**16):
            body += chunk
            if len(body) > _LIMIT:
                raise ValueError(f"the answer is longer than {_LIMIT} bytes")
    finally:
        answer.close()
    if answer.status != 200:
        raise ValueError(_refusal(answer, bytes(body[:_ERROR])))
    return bytes(body)


def _refusal(answer: urllib3.BaseHTTPResponse, body: bytes) -> str:
    text = " ".join(body.decode(errors="replace").split())
    target = cut(answer.headers.get("Location", "nowhere"))
    if 300 <= answer.status < 400:
        return f"status {answer.status}: redirects are not followed (to {target})"
    return f"status {answer.status}: {cut(text)}"
