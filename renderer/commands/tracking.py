"""`--tracked`: whether Git tracks what the policies render, for hooks, whose commit would leave the rest out."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import click

from renderer.commands.errors import CannotRun
from renderer.commands.options import Repository
from renderer.model import Finding, Position

CODE = "overlay/untracked"

option = click.option(
    "--tracked", is_flag=True, help="Report rendered files that Git does not track as well: for pre-commit."
)


def untracked(repository: Repository, files: Collection[str]) -> Iterator[Finding]:
    """One finding for each of the files that is not in Git's index.  Raises `CannotRun` without Git."""
    folder = repository.settings.overlays
    known = _tracked(repository, folder) if files else frozenset()
    severity = repository.settings.weight(CODE)
    for path in files:
        if path not in known:
            message = "Git does not track this file, so that a commit leaves it out"
            yield Finding(CODE, severity, Position(path), message, f"Run git add {folder} and commit again.")


def _tracked(repository: Repository, folder: str) -> frozenset[str]:
    import subprocess  # late: most runs do not ask Git

    command = ["git", "--literal-pathspecs", "ls-files", "-z", "--", folder]
    try:
        ended = subprocess.run(command, cwd=repository.path, capture_output=True, check=False)
    except FileNotFoundError:
        raise CannotRun("--tracked needs git, and there is none on the PATH.") from None
    except OSError as error:
        raise CannotRun(f"--tracked needs git, and it cannot be run: {error.strerror}.") from None
    if ended.returncode:
        said = " ".join(ended.stderr.decode("utf-8", "replace").split())
        raise CannotRun(f"--tracked needs the files that Git tracks, and git ls-files failed: {said}")
    return frozenset(ended.stdout.decode("utf-8", "replace").split("\0"))
