"""A Python environment that holds the packages of one requirements file and nothing else, made once."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from tests.testbed.build import alone, cache


class NoPackages(Exception):
    """pip could not install the packages; the message holds what it said."""


def environment(requirements: Path) -> Path:
    """The Python of the environment.  Raises `NoPackages`, as where there is no network."""
    made_from = requirements.read_bytes() + sys.version.encode()
    folder = cache() / f"environment-{hashlib.sha256(made_from).hexdigest()[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder.with_suffix(".lock")):
        if not (folder / "complete").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder, requirements)
            (folder / "complete").touch()
    return folder / "bin" / "python"


def _make(folder: Path, requirements: Path) -> None:
    """Without a pip of its own, so that really nothing else is in it."""
    venv.create(folder, symlinks=True)
    pip = [sys.executable, "-m", "pip", f"--python={folder / 'bin' / 'python'}", "--disable-pip-version-check"]
    install = ["install", "--quiet", "--require-hashes", "--only-binary=:all:", "-r", str(requirements)]
    ended = subprocess.run([*pip, *install], capture_output=True, text=True, check=False)
    if ended.returncode:
        raise NoPackages(f"{requirements.name} cannot be installed: {ended.stderr[-2000:]}")
