"""etcd and a kube-apiserver, with RBAC and admission on, and without nodes."""

from __future__ import annotations

import base64
import http.client
import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from tests.testbed.access import Access, Refused
from tests.testbed.processes import free_port, serving


@contextmanager
def api_server(etcd: Path, apiserver: Path, folder: Path) -> Iterator[Access]:
    """A fresh API server, as its administrator sees it."""
    with serving("etcd", partial(store_command, etcd, folder), store_ready, folder) as store:
        server = Server(apiserver, store, folder)
        with serving("kube-apiserver", server.command, server.ready, folder) as port:
            yield server.access(port)


def store_command(program: Path, folder: Path, port: int) -> list[str | Path]:
    """How etcd is started on a port.  On the same port again it finds its data."""
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


def store_ready(port: int) -> bool:
    """Whether etcd answers there."""
    return answers(port, "/health")


class Server:
    """How a kube-apiserver is started, with the secrets that outlive it, and who its administrator is.

    Further arguments win over ours.
    """

    def __init__(self, program: Path, store: int, folder: Path, arguments: Sequence[str] = ()) -> None:
        self._program = program
        self._arguments = arguments
        self._store = store
        self._folder = folder
        self._token = secrets.token_urlsafe()
        self._certificates = folder / "certificates"
        self._tokens, self._key = folder / "tokens.csv", folder / "sa.key"
        self._tokens.write_text(f"{self._token},admin,1,system:masters\n")
        self._key.write_text(signing_key())

    def command(self, port: int) -> list[str | Path]:
        return [
            self._program,
            f"--etcd-servers=http://127.0.0.1:{self._store}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self._certificates}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._key}",
            f"--service-account-signing-key-file={self._key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self._tokens}",
            # Nothing here makes the account that this plug-in wants for every pod.
            "--disable-admission-plugins=ServiceAccount",
            # A loopback address is none that it could publish.
            "--endpoint-reconciler-type=none",
            *self._arguments,
        ]

    def access(self, port: int) -> Access:
        authority = self._certificates / "apiserver.crt"
        return Access.create(port, authority, self._token, self._folder / "admin.kubeconfig")

    def ready(self, port: int) -> bool:
        access = self.access(port)
        try:
            # The namespaces of the system are made a moment after the server calls itself ready.
            return access.get("/readyz") == "ok" and access.exists("/api/v1/namespaces/kube-system")
        except (OSError, http.client.HTTPException, Refused):
            return False


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
