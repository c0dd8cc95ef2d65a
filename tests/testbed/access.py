"""Somebody's access to an API server: by HTTP for reading and for single writes, by kubectl for what users apply."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

KUBECTL = Path(sys.executable).with_name("kubectl")
_SECONDS = 60


class Refused(Exception):
    """The API server said no; `status` is the code of its answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status

    @property
    def missing(self) -> bool:
        """Whether there is nothing at that path."""
        return self.status == http.client.NOT_FOUND


class Applied(NamedTuple):
    """What kubectl said, and whether all of it was accepted."""

    ok: bool
    output: str


@dataclass(frozen=True, slots=True)
class Access:
    """An API server and the user that a token stands for.  `kubeconfig` says the same to other programs."""

    port: int
    authority: Path
    token: str
    kubeconfig: Path

    @classmethod
    def create(cls, port: int, authority: Path, token: str, kubeconfig: Path) -> Access:
        """With a new kubeconfig at that path."""
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bed", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": "user"}}],
            "current-context": "bed",
        }
        kubeconfig.write_text(json.dumps(config))
        return cls(port, authority, token, kubeconfig)

    def get(self, path: str) -> Any:
        return self.send("GET", path)

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except Refused as refused:
            if refused.missing:
                return False
            raise
        return True

    def path(self, body: dict[str, Any]) -> str:
        """Where an object of that kind, namespace and name is."""
        version = body["apiVersion"]
        base = f"/apis/{version}" if "/" in version else f"/api/{version}"
        kinds = self.get(base)["resources"]
        [kind] = [kind for kind in kinds if kind["kind"] == body["kind"] and "/" not in kind["name"]]
        scope = f"/namespaces/{body['metadata']['namespace']}" if kind["namespaced"] else ""
        return f"{base}{scope}/{kind['name']}/{body['metadata']['name']}"

    def ensure_namespace(self, name: str) -> None:
        """A namespace of that name, as tests cannot get rid of one: nothing on the bed would finish its deletion."""
        if not self.exists(f"/api/v1/namespaces/{name}"):
            self.create_at("/api/v1/namespaces", {"metadata": {"name": name}})

    def create_at(self, path: str, body: dict[str, Any]) -> Any:
        return self.send("POST", path, body)

    def merge(self, path: str, body: dict[str, Any]) -> Any:
        """A JSON merge patch: null removes."""
        return self.send("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> Any:
        return self.send("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

    def send(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """The answer's body.  Raises `Refused` for an answer that is none of 2xx."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the server makes its certificate by itself
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        text = None if body is None else json.dumps(body)
        with closing(http.client.HTTPSConnection("127.0.0.1", self.port, timeout=_SECONDS, context=context)) as wire:
            wire.request(method, path, text, headers)
            answer = wire.getresponse()
            content = answer.read().decode()
        if not http.client.OK <= answer.status < http.client.MULTIPLE_CHOICES:
            raise Refused(answer.status, content)
        return json.loads(content) if content.startswith(("{", "[")) else content

    def apply(self, manifests: str, manager: str, *, force: bool = False) -> Applied:
        """`kubectl apply --server-side`, with the cluster's own check of every field."""
        arguments = ["apply", "--server-side", f"--field-manager={manager}", f"--force-conflicts={str(force).lower()}"]
        ended = kubectl([f"--kubeconfig={self.kubeconfig}", *arguments, "-f", "-"], manifests)
        return Applied(ended.returncode == 0, ended.stdout + ended.stderr)


def kubectl(arguments: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    """The locked kubectl of the environment; settings of the person who runs the tests do not reach it."""
    return subprocess.run(
        [KUBECTL, *arguments],
        input=text,
        env={"HOME": "/nonexistent", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS * 5,
    )


def kustomize(folder: Path) -> str:
    """What kubectl's own kustomize builds from a folder."""
    ended = kubectl(["kustomize", str(folder)])
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
