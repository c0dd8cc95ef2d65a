"""Both clients: whom they trust, how long they wait, and that they end when they are told to."""

from __future__ import annotations

import http.client
import ssl
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from renderer.softtaint import config
from renderer.softtaint.cluster import Cluster
from renderer.softtaint.prometheus import query
from renderer.softtaint.stop import Stop
from tests.testbed.access import Access
from tests.testbed.fixtures import SERVERS
from tests.testbed.monitoring import Monitoring
from tests.testbed.proxy import Proxy, connection

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
        assert query(config.Prometheus(url=proxies[1].url, ca_file=str(authority)), "1")
    finally:
        for proxy in proxies:
            proxy.close()
