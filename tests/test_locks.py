"""The locks: complete, of one mind, and free of anything that belongs to the machine that made them."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCKS = ["requirements.txt", "requirements-softtaint.txt", "requirements-dev.txt"]


def locked(name: str) -> dict[str, Requirement]:
    """The requirements of a lock, each checked to hold at least one hash."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    found: dict[str, Requirement] = {}
    for line in text.splitlines():
        if line and not line.lstrip().startswith("#"):
            requirement, *hashes = line.split(" --hash=")
            assert hashes, line
            assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", word.strip()) for word in hashes), line
            parsed = Requirement(requirement)
            found[canonicalize_name(parsed.name)] = parsed
    return found


def config() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def wanted(*, tests: bool) -> list[Requirement]:
    """What pyproject.toml asks for, for rendering or for the tests too."""
    project, groups = config()["project"], config()["dependency-groups"]
    words = [*project["dependencies"], *groups["install"]]
    if tests:
        words += [word for extra in ("build", "cluster") for word in project["optional-dependencies"][extra]]
        words += [word for word in groups["dev"] if isinstance(word, str)]
    return [Requirement(word) for word in words]


@pytest.mark.parametrize("name", LOCKS)
def test_lock_names_no_index_and_no_path(name: str) -> None:
    lines = (ROOT / name).read_text().splitlines()
    assert [line for line in lines if "://" in line or re.match(r"\s*(-|/)", line.replace("--hash=", ""))] == []


def softtaint() -> list[Requirement]:
    """What pyproject.toml asks for, for the image of the soft-tainter."""
    return [Requirement(word) for word in config()["dependency-groups"]["softtaint"]]


@pytest.mark.parametrize(
    ("name", "requirements"),
    [
        ("requirements.txt", wanted(tests=False)),
        ("requirements-softtaint.txt", softtaint()),
        ("requirements-dev.txt", wanted(tests=True)),
    ],
)
def test_lock_fits_pyproject(name: str, requirements: list[Requirement]) -> None:
    pins = locked(name)
    for requirement in requirements:
        [pin] = pins[canonicalize_name(requirement.name)].specifier
        assert pin.operator == "=="
        assert pin.version in requirement.specifier, f"{requirement}: run make lock"


@pytest.mark.parametrize("name", LOCKS)
def test_rendering_the_image_and_tests_use_the_same_versions(name: str) -> None:
    some, every = locked(name), locked("requirements-dev.txt")
    assert some == {name: every[name] for name in some}


def test_the_image_is_asked_for_what_the_package_asks_for() -> None:
    """The same words in two tables, which cannot include each other."""
    project = config()["project"]
    models = [word for word in project["dependencies"] if word.startswith("msgspec")]
    extra = [Requirement(word) for word in [*project["optional-dependencies"]["cluster"], *models]]
    assert {*map(str, softtaint())} == {*map(str, extra)}
