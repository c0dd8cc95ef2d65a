"""The Kubernetes API, as much of it as the job needs: raw answers, decoded into few fields and dropped.

The only module that knows the `kubernetes` library, and of that only how to find and to trust the server: its generated
classes take more memory for one page of nodes than the job does for all of them.
"""

from __future__ import annotations

import random
import ssl
import threading
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import load_incluster_config
from kubernetes.config import load_kube_config as _load_file
from kubernetes.config.incluster_config import SERVICE_TOKEN_FILENAME
from urllib3 import BaseHTTPResponse, PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError
from urllib3.util.ssl_ import create_urllib3_context

from renderer.softtaint import answers, wire
from renderer.softtaint.config import NAME
from renderer.softtaint.nodes import Node
from renderer.softtaint.stop import Stop
from renderer.softtaint.stop import Stopped as Stopped  # noqa: PLC0414  (all that a request raises is found here)
from renderer.softtaint.texts import token
from renderer.values import Value

T = TypeVar("T")

JSON, JSON_PATCH, MERGE_PATCH = "application/json", "application/json-patch+json", "application/merge-patch+json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json"
"""What a write answers with: the whole of a node is 20 kB that nobody reads."""
PAGE: Final = 500
_ATTEMPTS: Final = 5
_LISTS: Final = 3
_LONGEST: Final = 30.0
_NEVER: Final = Retry(False, redirect=False)
_CONNECT: Final = 10.0
_READ: Final = 15.0
"""Seconds until an answer begins, or goes on."""
_BUDGET: Final = 100.0
"""Seconds for a request with all its attempts: a server that hangs is told before a CronJob's deadline of 300 s."""
_GRACE: Final = 1.0
"""Seconds that a request under way has after the stop: most are answered, and then it is known what came of them."""
_LAST: Final = 5.0
"""Seconds for what is said at the very end, of the 60 that a pod has."""
OK, UNAUTHORIZED, NOT_FOUND, CONFLICT, GONE, UNPROCESSABLE, BUSY, BROKEN = 200, 401, 404, 409, 410, 422, 429, 500


class ConfigurationError(Exception):
    """It is not said which cluster this is, or not so that it can be understood."""


class Unreachable(Exception):
    """No answer, or none but that the server cannot answer, after all attempts."""


class Refused(Exception):
    """The server said no; `status` is the code of its answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class _Request(Value, frozen=True):
    """`inline`: sent by the thread that asks, for thousands with short answers: a signal waits for one under way."""

    verb: str
    path: str
    body: bytes | None
    content: str
    accept: str
    inline: bool = False


class Cluster:
    """A connection that any number of threads share; `stop` ends all waiting, and then every call raises `Stopped`."""

    def __init__(self, kubeconfig: Path | None, threads: int, stop: Stop) -> None:
        """Raises `ConfigurationError`."""
        self._kubeconfig = kubeconfig
        self.stop = stop
        """Ends the wait for a request under way too, but for a moment."""
        self._lock = threading.Lock()
        self.requests: Counter[str] = Counter()
        """How many answers there were, by verb and status; 0 stands for none."""
        found = _configuration(kubeconfig)
        found.connection_pool_maxsize = threads
        self._token = _token(found, kubeconfig)
        self._manager = _manager(found)
        # Straight to its pool: to find it anew takes a third of the time of a request.
        self._pool = self._manager.connection_from_url(str(found.host))
        self._prefix = urlsplit(str(found.host)).path.rstrip("/")

    def nodes(self, selector: Mapping[str, str]) -> list[Node]:
        """All nodes; those that match the selector are in scope.

        One LIST in pages, without a resourceVersion: the first page is the most recent state (read by quorum, not from
        a cache), and the others are of the same moment.  Where that moment is forgotten before the last page (410), the
        list begins anew.
        """
        for _ in range(_LISTS - 1):
            try:
                return self._nodes(selector)
            except Refused as refused:
                if refused.status != GONE:
                    raise
        return self._nodes(selector)

    def _nodes(self, selector: Mapping[str, str]) -> list[Node]:
        found: list[Node] = []
        query = {"limit": str(PAGE)}
        while True:
            page = self.read("GET", f"/api/v1/nodes?{urlencode(query)}", answers.Page)
            found += [answers.node(item, selector) for item in page.items]
            if not page.metadata.next:
                return found
            query["continue"] = page.metadata.next

    def node(self, name: str, selector: Mapping[str, str]) -> Node | None:
        """A node as it is now, None where it is gone."""
        try:
            return answers.node(self.read("GET", _path(name), answers.Item), selector)
        except Refused as refused:
            if refused.status == NOT_FOUND:
                return None
            raise

    def patch_node(self, name: str, operations: list[dict[str, Any]]) -> None:
        """One JSON patch.  Raises `Refused`: 422 where a test of it fails, 404 where the node is gone."""
        self.send("PATCH", f"{_path(name)}?fieldManager={NAME}", operations, JSON_PATCH, _METADATA, inline=True)

    def read(
        self,
        verb: str,
        path: str,
        kind: type[T],
        body: Any = None,
        *,
        attempts: int = _ATTEMPTS,
        timeout: float | None = None,
    ) -> T:
        """The answer of `send`, decoded.  Raises `Unreachable` too where something else answers."""
        data = self.send(verb, path, body, attempts=attempts, timeout=timeout)
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Unreachable(f"{verb} {path.partition('?')[0]}: not an answer of Kubernetes: {error}") from error

    def last(self, verb: str, path: str, body: Any) -> None:
        """Sends what is to be said at the very end: once, even if the job is to stop.  Whatever comes of it."""
        self._ask(_Request(verb, path, msgspec.json.encode(body), JSON, JSON), _LAST, None)

    def send(
        self,
        verb: str,
        path: str,
        body: Any = None,
        content: str = JSON,
        accept: str = JSON,
        *,
        attempts: int = _ATTEMPTS,
        timeout: float | None = None,
        inline: bool = False,
    ) -> bytes:
        """The body of the answer.  Raises `Refused`, `Unreachable` or `Stopped`.

        `timeout`: seconds for all attempts and the waits between them; a time that is long without it.

        A token that is refused is read anew, once.  Where the server is busy (429, honouring Retry-After) or broken
        (5xx), or the connection is cut, the request is sent again: each can be, as writes name the state they are for.
        """
        text = None if body is None else msgspec.json.encode(body)
        end = time.monotonic() + (_BUDGET if timeout is None else timeout)
        return self._settle(_Request(verb, path, text, content, accept, inline), attempts, end)

    def _settle(self, request: _Request, attempts: int, end: float) -> bytes:
        reason, renewed, attempt = "", False, 0
        while attempt < attempts:
            if self.stop.is_set():
                raise Stopped
            left = end - time.monotonic()
            if left <= 0:
                break
            status, data, after = self._ask(request, left, self.stop)
            if status == UNAUTHORIZED and not renewed:
                renewed = True
                self._token = self._renew()
                continue
            if status and status < BROKEN and status != BUSY:
                if OK <= status < 300:
                    return data
                raise Refused(status, answers.message(data))
            attempt += 1
            reason = f"status {status}: {answers.message(data)}" if status else data.decode()
            if attempt < attempts:
                self._wait(attempt, after, end)
        raise Unreachable(f"{request.verb} {request.path.partition('?')[0]}: {reason}")

    def _ask(self, request: _Request, seconds: float, stop: Stop | None) -> tuple[int, bytes, str]:
        """Status, body and Retry-After; status 0 and the error where there was no answer.  Raises `Stopped`."""
        work = partial(self._urlopen, request, seconds)
        try:
            answer = work() if request.inline else wire.within(work, seconds, stop, _GRACE)
            found = answer.status, answer.data, answer.headers.get("Retry-After", "")
        except (HTTPError, OSError) as error:
            found = 0, str(error).encode(), ""
        with self._lock:
            self.requests[f"{request.verb} {found[0]}"] += 1
        return found

    def _urlopen(self, request: _Request, seconds: float) -> BaseHTTPResponse:
        headers = {"Content-Type": request.content, "Accept": request.accept, "User-Agent": NAME}
        if self._token:
            headers["Authorization"] = self._token
        timeout = Timeout(connect=min(_CONNECT, seconds), read=min(_READ, seconds))
        path = self._prefix + request.path
        return self._pool.urlopen(
            request.verb, path, request.body, headers, retries=_NEVER, redirect=False, timeout=timeout
        )

    def _renew(self) -> str:
        """The token as it is now in its file; where that cannot be read, the one that we have."""
        try:
            return _token(_configuration(self._kubeconfig), self._kubeconfig)
        except ConfigurationError:
            return self._token

    def _wait(self, attempt: int, after: str, end: float) -> None:
        """At least as long as the server asks; never in step with others, nor beyond the end."""
        asked = float(after) if after.isdecimal() else 0.0
        seconds = min(max(asked, 0.2 * 2**attempt), _LONGEST)
        seconds *= random.uniform(1, 1.25)  # noqa: S311  (no secret)
        self.stop.wait(max(min(seconds, end - time.monotonic()), 0))

    def close(self) -> None:
        self._manager.clear()


def _configuration(kubeconfig: Path | None) -> Configuration:
    found = Configuration()
    try:
        if kubeconfig is None:
            found.proxy = None  # the library takes one from the environment, which a cluster's own server is not behind
            load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
        else:
            _load_file(config_file=str(kubeconfig), client_configuration=found, persist_config=False)  # type: ignore[no-untyped-call]
    except Exception as error:  # what is wrong with a file comes as whatever was first to stumble
        where = "this is no pod, and --kubeconfig is not given" if kubeconfig is None else str(kubeconfig)
        raise ConfigurationError(f"{where}: {error}") from error
    return found


def _manager(found: Configuration) -> PoolManager:
    manager = RESTClientObject(found).pool_manager
    context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if found.verify_ssl else ssl.CERT_NONE)
    if not found.ssl_ca_cert:  # else the file is read for each connection: it may change
        context.load_default_certs()
    manager.connection_pool_kw["ssl_context"] = wire.lenient(context)
    wire.severable(manager)
    return manager


def _token(found: Configuration, kubeconfig: Path | None) -> str:
    """The header's value; empty where the account has none.  Raises `ConfigurationError`, which does not quote it."""
    scheme, _, rest = str(found.api_key.get("BearerToken", "")).strip().partition(" ")
    if not scheme:
        return ""
    where = f"{SERVICE_TOKEN_FILENAME}" if kubeconfig is None else f"the token of {kubeconfig}"
    try:
        return f"{scheme} {token(rest, where)}"
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def _path(name: str) -> str:
    return f"/api/v1/nodes/{quote(name, safe='')}"
