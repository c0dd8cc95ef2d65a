"""Both clients: whom they trust, how long they wait, and that they end when they are told to."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from threading import enumerate as enumerate_threads
from typing import Any

import pytest
from kubernetes.config import incluster_config

from renderer.softtaint.cluster import Cluster, ConfigurationError, Unreachable
from renderer.softtaint.config import Prometheus
from renderer.softtaint.prometheus import PrometheusError, query
from renderer.softtaint.stop import Stop
from tests.softtaint import LEASE, STOPPED, Tainter, ended
from tests.softtaint_runs import DEAD, Configured, config, on, plain, tainter
from tests.testbed.access import Access
from tests.testbed.fixtures import SERVERS
from tests.testbed.monitoring import Monitoring
from tests.testbed.processes import until
from tests.testbed.proxy import Exchange, Proxy, between, connection

__all__ = ["config", "plain", "tainter"]

pytestmark = SERVERS


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every context starts as in Python 3.13."""
    plain = ssl.SSLContext.__new__

    def new(cls: type[ssl.SSLContext], *arguments: Any, **more: Any) -> ssl.SSLContext:
        context = plain(cls, *arguments, **more)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl.SSLContext, "__new__", staticmethod(new))


EXTENSIONS = """[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = {name}
[extensions]
basicConstraints = critical,CA:{authority}
subjectAltName = IP:127.0.0.1
subjectKeyIdentifier = none
authorityKeyIdentifier = none
"""


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Without an identifier of its key, as that of EKS; it signed `server.crt` beside it."""
    for name, more in ("authority", []), ("server", ["-CA", "authority.crt", "-CAkey", "authority.key"]):
        settings = EXTENSIONS.format(name=name, authority=str(not more).upper())
        (tmp_path / f"{name}.cnf").write_text(settings)
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *more]
        files = ["-config", f"{name}.cnf", "-keyout", f"{name}.key", "-out", f"{name}.crt"]
        subprocess.run([*command, *files], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "authority.crt"


def secured(wire: http.client.HTTPConnection, certificate: Path) -> Proxy:
    """The server that is there, by HTTPS."""
    return Proxy(lambda: wire, certificate)


@pytest.mark.usefixtures("strict")
def test_an_authority_without_an_identifier_of_its_key_is_trusted(
    apiserver: Access, prometheus: Monitoring, authority: Path, tmp_path: Path
) -> None:
    certificate = authority.with_name("server.crt")
    monitoring = http.client.HTTPConnection("127.0.0.1", prometheus.port, timeout=60)
    proxies = secured(connection(apiserver), certificate), secured(monitoring, certificate)
    ports = [int(proxy.url.rpartition(":")[2]) for proxy in proxies]
    try:
        context = ssl.create_default_context(cafile=str(authority))
        with pytest.raises(ssl.SSLCertVerificationError, match="Key Identifier"):
            http.client.HTTPSConnection("127.0.0.1", ports[0], context=context).connect()
        access = Access.create(ports[0], authority, apiserver.token, tmp_path / "kubeconfig")
        with closing(Cluster(access.kubeconfig, 1, Stop())) as cluster:
            assert cluster.read("GET", "/version", dict[str, Any])["major"]
        assert query(Prometheus(url=proxies[1].url, ca_file=str(authority)), "1")
    finally:
        for proxy in proxies:
            proxy.close()


@contextmanager
def trickle(head: bytes, *, endless: bool = True) -> Iterator[tuple[str, Event]]:
    """A server that begins so and then sends a byte at a time, or nothing; and that it has been asked."""
    asked, over = Event(), Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        wire, _ = listener.accept()
        with wire, suppress(OSError):
            wire.recv(65536)
            asked.set()
            wire.sendall(head)
            while not over.wait(0.05):
                wire.sendall(b"a" if endless else b"")

    thread = Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        over.set()
        thread.join(10)
        listener.close()


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX-A: ", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 O"])
def test_an_answer_has_so_long_with_its_headers(head: bytes) -> None:
    """And nothing of the request is left behind."""
    with trickle(head) as (url, _):
        began = time.monotonic()
        with pytest.raises(PrometheusError, match=r"no whole answer within 0\.3 s"):
            query(Prometheus(url=url), "1", seconds=0.3)
        assert time.monotonic() - began < 3
        until(lambda: not asking(), "the end of the request", seconds=20)


def asking() -> bool:
    return any(thread.name == "request" for thread in enumerate_threads())


def test_a_request_that_comes_late_is_cut_too() -> None:
    """It has not yet connected when its time is over."""
    with trickle(b"HTTP/1.1 200 OK\r\n\r\n") as (url, _):
        with pytest.raises(PrometheusError):
            query(Prometheus(url=url), "1", seconds=0)
        until(lambda: not asking(), "the end of the request", seconds=20)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX-A: ", b""])
def test_a_request_to_the_api_server_has_so_long(head: bytes, tmp_path: Path) -> None:
    with trickle(head, endless=bool(head)) as (url, _):
        began = time.monotonic()
        with closing(Cluster(kubeconfig(url, tmp_path), 1, Stop())) as cluster, pytest.raises(Unreachable):
            cluster.send("GET", "/version", timeout=0.3)
        assert time.monotonic() - began < 3


def test_waits_between_attempts_count(tmp_path: Path) -> None:
    began = time.monotonic()
    with closing(Cluster(kubeconfig(DEAD, tmp_path), 1, Stop())) as cluster, pytest.raises(Unreachable):
        cluster.send("GET", "/version", timeout=0.3)
    assert time.monotonic() - began < 3


def kubeconfig(url: str, folder: Path, **user: str) -> Path:
    given = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "bed", "cluster": {"server": url}}],
        "users": [{"name": "user", "user": user or {"token": "token"}}],
        "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "user"}}],
        "current-context": "bed",
    }
    path = folder / "trickle.kubeconfig"
    path.write_text(json.dumps(given))
    return path


def terminated(tainter: Tainter, process: subprocess.Popen[str], asked: Event) -> None:
    """It ends soon, and says why; the Lease is free."""
    assert asked.wait(30)
    began = time.monotonic()
    process.terminate()
    run = ended(process)
    assert time.monotonic() - began < 3
    assert run.code == STOPPED, run.text
    assert not tainter.admin.get(LEASE)["spec"].get("holderIdentity")


@pytest.mark.usefixtures("plain")
def test_a_signal_ends_the_wait_for_prometheus(tainter: Tainter, config: Configured) -> None:
    with trickle(b"", endless=False) as (url, asked):
        terminated(tainter, tainter.start(config(url)), asked)


@pytest.mark.usefixtures("plain")
def test_a_signal_ends_the_wait_for_the_api_server(tainter: Tainter, config: Configured, tmp_path: Path) -> None:
    asked, over = Event(), Event()

    def hang(_: Exchange) -> None:
        asked.set()
        over.wait(60)

    with between(tainter.account, tmp_path) as (proxy, path):
        proxy.rule = on("GET", "/nodes", hang)
        try:
            terminated(tainter, tainter.start(config(), f"--kubeconfig={path}"), asked)
        finally:
            over.set()


def test_what_is_no_token_is_not_quoted_either(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first-secret\nsecond-secret\n")
    with pytest.raises(ConfigurationError, match="not one token") as caught:
        Cluster(kubeconfig(DEAD, tmp_path, tokenFile=str(path)), 1, Stop())
    assert "secret" not in str(caught.value)


def test_proxies_of_the_environment_are_nothing_to_a_pod(
    apiserver: Access, prometheus: Monitoring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, DEAD)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    token = tmp_path / "token"
    token.write_text(apiserver.token)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(apiserver.authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(apiserver.port))
    with closing(Cluster(None, 1, Stop())) as cluster:
        assert cluster.read("GET", "/api", dict[str, Any], None)["kind"]
    assert query(Prometheus(url=prometheus.url), "1")
