"""A repository in memory, for tests that render many policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from renderer.model import Entry, TreeError
from renderer.pipeline import Outcome, Settings, run

API = "kubevirt-policy.dev/v1alpha1"
CLUSTER_FILE = """\
apiVersion: kubevirt-policy.dev/v1alpha1
kind: Cluster
metadata: {name: prod-east}
spec:
  platform: openshift
  versions: {hyperconverged: "1.17"}
  delivery: {engine: argocd}
  operatorResource: {appliedBy: other}
"""
"""The text of one, for tests that run the program in a folder."""


class Files:
    """A tree that holds the given texts by path."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files

    def list(self, folder: str) -> Sequence[Entry]:
        below = [path.removeprefix(f"{folder}/") for path in self._files if not folder or path.startswith(f"{folder}/")]
        names = {name.partition("/")[0]: "/" in name for name in below}
        return [Entry(name, is_folder) for name, is_folder in sorted(names.items())]

    def read(self, path: str) -> bytes:
        if path not in self._files:
            raise TreeError("there is no such file", missing=True)
        return self._files[path].encode()


def cluster(name: str = "here", platform: str = "openshift", **spec: Any) -> dict[str, Any]:
    """A `Cluster` document."""
    base: dict[str, Any] = {"delivery": {"engine": "none"}, "operatorResource": {"form": "none"}}
    whole = {"platform": platform, **base, **spec}
    return {"apiVersion": API, "kind": "Cluster", "metadata": {"name": name}, "spec": whole}


def policy(kind: str, name: str = "it", **spec: Any) -> dict[str, Any]:
    """A policy for every cluster."""
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": {"clusters": {}, **spec}}


def render(documents: Iterable[dict[str, Any]], files: Mapping[str, str] | None = None) -> Outcome:
    """Everything that those documents come to."""
    text = yaml.safe_dump_all(list(documents), sort_keys=False)
    return run(Files({**(files or {}), "policies/all.yaml": text}), Settings())


def loaded(outcome: Outcome, path: str) -> Any:
    """A rendered file as plain data; `path` is relative to the folder of the only cluster."""
    return yaml.safe_load(outcome.files[f"overlays/here/{path}"])


def errors(outcome: Outcome) -> set[str]:
    """The codes of all errors."""
    return {finding.code for finding in outcome.findings if finding.severity == "error"}


def warnings(outcome: Outcome) -> set[str]:
    """The codes of all warnings."""
    return {finding.code for finding in outcome.findings if finding.severity == "warning"}
