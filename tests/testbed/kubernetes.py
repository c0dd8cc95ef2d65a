"""etcd and a kube-apiserver, with RBAC and admission on, and without nodes."""

from __future__ import annotations

import base64
import http.client
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.testbed.access import Access, Refused
from tests.testbed.processes import free_port, serving


@contextmanager
def api_server(etcd: Path, apiserver: Path, folder: Path) -> Iterator[Access]:
    """A fresh API server, as its administrator sees it."""
    with _etcd(etcd, folder) as store:
        yield from _api_server(apiserver, store, folder)


@contextmanager
def _etcd(program: Path, folder: Path) -> Iterator[int]:
    def command(port: int) -> list[str | Path]:
        client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
        return [
            program,
            f"--data-dir={folder / f'etcd-{port}'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    with serving("etcd", command, lambda port: answers(port, "/health"), folder) as port:
        yield port


def _api_server(program: Path, store: int, folder: Path) -> Iterator[Access]:
    token = secrets.token_urlsafe()
    tokens, key, certificates = folder / "tokens.csv", folder / "sa.key", folder / "certificates"
    tokens.write_text(f"{token},admin,1,system:masters\n")
    key.write_text(signing_key())

    def command(port: int) -> list[str | Path]:
        return [
            program,
            f"--etcd-servers=http://127.0.0.1:{store}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={certificates}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={tokens}",
            # Nothing here makes the account that this plug-in wants for every pod.
            "--disable-admission-plugins=ServiceAccount",
            # A loopback address is none that it could publish.
            "--endpoint-reconciler-type=none",
        ]

    def access(port: int) -> Access:
        return Access.create(port, certificates / "apiserver.crt", token, folder / "admin.kubeconfig")

    def ready(port: int) -> bool:
        try:
            # The namespaces of the system are made a moment after the server calls itself ready.
            return access(port).get("/readyz") == "ok" and access(port).exists("/api/v1/namespaces/kube-system")
        except (OSError, http.client.HTTPException, Refused):
            return False

    with serving("kube-apiserver", command, ready, folder) as port:
        yield access(port)


def signing_key() -> str:
    """A new private key for the tokens of service accounts: P-256, in the form of RFC 5915."""
    number = b"\0" + secrets.token_bytes(31)  # below the order of the curve in any case
    parts = b"\x02\x01\x01" + b"\x04\x20" + number + bytes.fromhex("a00a06082a8648ce3d030107")
    text = base64.b64encode(b"\x30" + bytes([len(parts)]) + parts).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{text}\n-----END EC PRIVATE KEY-----\n"


def answers(port: int, path: str) -> bool:
    """Whether a plain HTTP server says that all is well."""
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as wire:
            wire.request("GET", path)
            return wire.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
