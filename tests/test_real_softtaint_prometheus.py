"""The one query to Prometheus: what is trusted, what is sent, what is refused.  The real one, and a proxy before it."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from renderer.softtaint import config
from renderer.softtaint.prometheus import PrometheusError, query
from renderer.softtaint.samples import expression, read
from tests.testbed.access import Access
from tests.testbed.fixtures import SERVERS
from tests.testbed.monitoring import Monitoring
from tests.testbed.proxy import Action, Exchange, Proxy, say

pytestmark = SERVERS


@pytest.fixture(scope="module")
def monitoring(prometheus: Monitoring) -> Monitoring:
    old = int((time.time() - 100) * 1000)
    series = {'use{instance="a"}': "0.25", 'use{instance="b"}': f"0.5 {old}"}
    prometheus.expose(series | {f'many{{instance="node-{number}"}}': "0.5" for number in range(10_000)})
    return prometheus


@pytest.fixture
def secured(monitoring: Monitoring, apiserver: Access) -> Iterator[Proxy]:
    """By HTTPS, with the certificate that the API server made for itself."""
    proxy = Proxy(lambda: http.client.HTTPConnection("127.0.0.1", monitoring.port, timeout=60), apiserver.authority)
    yield proxy
    proxy.close()


def server(url: str, ca: Path | None = None, token: Path | None = None) -> config.Prometheus:
    ca_file, token_file = (None if path is None else str(path) for path in (ca, token))
    return config.Prometheus(url=url, ca_file=ca_file, token_file=token_file)


@pytest.mark.parametrize("text", ["use", "use # a comment", "(use)"])
def test_the_age_of_a_sample_is_that_of_its_measurement(monitoring: Monitoring, text: str) -> None:
    answer = query(server(monitoring.url), expression(text))
    assert read(answer, 150).points == {"a": 25, "b": 50}
    assert read(answer, 50).points == {"a": 25}


def test_what_is_computed_is_as_old_as_its_evaluation(monitoring: Monitoring) -> None:
    assert read(query(server(f"{monitoring.url}/"), expression("use * 1")), 50).points == {"a": 25, "b": 50}


def test_ten_thousand_series(monitoring: Monitoring) -> None:
    assert len(read(query(server(monitoring.url), expression("many")), 600).points) == 10_000


def test_the_certificate_and_the_token_of_the_moment_are_used(
    secured: Proxy, apiserver: Access, tmp_path: Path
) -> None:
    token, tokens = tmp_path / "token", []

    def note(exchange: Exchange, _count: int) -> None:
        tokens.append(exchange.token)

    secured.rule = note
    for text in ("one\n", "two"):
        token.write_text(text)
        query(server(secured.url, apiserver.authority, token), "use")
    query(server(secured.url, apiserver.authority), "use")
    assert tokens == ["Bearer one", "Bearer two", ""]


def test_an_unknown_certificate_is_refused(secured: Proxy) -> None:
    with pytest.raises(PrometheusError, match="CERTIFICATE_VERIFY_FAILED"):
        query(server(secured.url), "use")


@pytest.mark.parametrize("missing", ["ca", "token"])
def test_files_that_are_missing_are_named(secured: Proxy, apiserver: Access, tmp_path: Path, missing: str) -> None:
    absent = tmp_path / missing
    files = {"ca": apiserver.authority, missing: absent}
    with pytest.raises(PrometheusError, match="No such file"):
        query(server(secured.url, **files), "use")


@pytest.mark.parametrize("content", [b"", b"first-secret\nsecond-secret\n", b"two secrets", b"secret\0", b"secret\xff"])
def test_what_is_no_token_is_not_quoted(secured: Proxy, apiserver: Access, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(PrometheusError, match="not one token") as caught:
        query(server(secured.url, apiserver.authority, path), "use")
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value).replace(str(path), "")


def test_a_redirect_is_refused(secured: Proxy, apiserver: Access) -> None:
    secured.rule = lambda _exchange, _count: say(302, Location="http://127.0.0.1:1/")
    with pytest.raises(PrometheusError, match=r"status 302: redirects are not followed \(to http://127.0.0.1:1/\)"):
        query(server(secured.url, apiserver.authority), "use")


def test_a_refusal_is_quoted(secured: Proxy, apiserver: Access) -> None:
    secured.rule = lambda _exchange, _count: say(403, "you may not look")
    with pytest.raises(PrometheusError, match=r"status 403: .*you may not look"):
        query(server(secured.url, apiserver.authority), "use")
    secured.rule = lambda _exchange, _count: None
    with pytest.raises(PrometheusError, match=r"status 400: .*unclosed left parenthesis"):
        query(server(secured.url, apiserver.authority), "use(")


def constant(action: Action, _exchange: Exchange, _count: int) -> Action:
    return action


def test_long_texts_of_a_server_are_cut(secured: Proxy, apiserver: Access) -> None:
    for said in (say(status, "x" * 5000, Location="y" * 5000) for status in (302, 403)):
        secured.rule = partial(constant, said)
        with pytest.raises(PrometheusError) as caught:
            query(server(secured.url, apiserver.authority), "use")
        assert len(str(caught.value)) < 300


def test_a_connection_that_is_cut(secured: Proxy, apiserver: Access) -> None:
    secured.rule = lambda _exchange, _count: Exchange.cut
    with pytest.raises(PrometheusError):
        query(server(secured.url, apiserver.authority), "use")


@pytest.fixture
def endless() -> Iterator[str]:
    """Something that answers without an end."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        wire, _ = listener.accept()
        with wire, listener:
            wire.recv(65536)
            wire.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            try:
                while True:
                    wire.sendall(b" " * 2**20)
            except OSError:
                return

    thread = Thread(target=answer, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    thread.join(30)


def test_an_answer_without_an_end_is_cut_off(endless: Any) -> None:
    with pytest.raises(PrometheusError, match="longer than 16777216 bytes"):
        query(server(endless), "use")
