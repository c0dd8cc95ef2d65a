"""The options that commands share, and the work that goes with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from renderer import config, pipeline
from renderer.commands.errors import CannotRun
from renderer.model import Tree, TreeError
from renderer.pipeline import Outcome, Settings
from renderer.report import FORMATS, Report
from renderer.tree import DiskTree
from renderer.values import Value, replace

root = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    envvar="KUBEVIRT_POLICY_ROOT",
    show_envvar=True,
    help="The repository. Default: the nearest folder upwards that has .git or .kubevirt-policy.yaml.",
)
clusters = click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME",
    callback=lambda _context, _option, names: tuple(dict.fromkeys(names)),
    help="Only this cluster's folders; may be given again.",
)
output_format = click.option(
    "--output-format",
    type=click.Choice(list(FORMATS)),
    default="text",
    envvar="KUBEVIRT_POLICY_OUTPUT_FORMAT",
    show_default=True,
    show_envvar=True,
    help="How to report.",
)
strict = click.option(
    "--strict", is_flag=True, envvar="KUBEVIRT_POLICY_STRICT", show_envvar=True, help="Exit 1 on warnings as well."
)
quiet = click.option("--quiet", "-q", is_flag=True, help="Print errors only.")
allow_empty = click.option(
    "--allow-empty", is_flag=True, help="Go on without any Cluster document: every overlay is then an orphan."
)
debug = click.option("--debug", is_flag=True, help="Show the traceback of a bug.")


class Shared(Value, frozen=True):
    """The values of the options of every command that reads the policies."""

    root: Path | None
    allow_empty: bool
    output_format: str
    strict: bool
    quiet: bool


def shared(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command the shared options; it is called with a `Shared` and its own options."""

    @wraps(command)
    def run(**own: Any) -> int:
        own.pop("debug")  # read where a bug is caught
        given = Shared(**{name: own.pop(name) for name in Shared.__struct_fields__})
        return command(given, **own)

    for decorate in (debug, quiet, strict, output_format, allow_empty, root):
        run = decorate(run)
    return run


class Repository(Value, frozen=True):
    """A work tree and its settings."""

    path: Path
    tree: DiskTree
    settings: Settings

    def run(self, *, allow_empty: bool, only: tuple[str, ...] = ()) -> Outcome:
        """The pipeline's outcome.  Raises `CannotRun` without clusters, or for the name of an unknown one."""
        outcome = pipeline.run(self.tree, self.settings)
        if outcome.empty and not allow_empty:
            raise CannotRun(
                f"no Cluster document found in {self.settings.policies}/ of {self.path}. "
                "Add one, change to the repository, or give --allow-empty to remove every overlay."
            )
        unknown = sorted(set(only) - set(outcome.rendered))
        if unknown and not outcome.failed:
            raise CannotRun(f"no cluster is called {', '.join(unknown)}. Known: {', '.join(outcome.rendered)}.")
        return outcome


class Lines:
    """The source lines that findings are shown with; each file is read once."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._files: dict[str, list[str]] = {}

    def __call__(self, file: str, number: int) -> str:
        """One line of a file, or nothing where it cannot be shown."""
        if file not in self._files:
            self._files[file] = self._read(file)
        lines = self._files[file]
        return lines[number - 1] if 0 < number <= len(lines) else ""

    def _read(self, file: str) -> list[str]:
        try:
            return self._tree.read(file).decode("utf-8-sig", "replace").splitlines()
        except TreeError:
            return []


def open_repository(given: Path | None) -> Repository:
    """The repository that `--root` or the working directory names.  Raises `CannotRun`."""
    try:
        path = (given or config.find_root(Path.cwd())).resolve()
    except FileNotFoundError:
        raise CannotRun("the folder that this was started in is gone.") from None
    tree = DiskTree(path)
    try:
        return Repository(path, tree, config.load(tree))
    except config.ConfigError as error:
        raise CannotRun(str(error)) from None


def progress(text: str, given: Shared) -> None:
    """One line that is written over, for people who watch; an empty text clears it."""
    if sys.stderr.isatty() and not given.quiet:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def publish(report: Report, given: Shared) -> int:
    """Data to stdout, messages to stderr; the exit code is 1 where a finding makes the command fail."""
    progress("", given)
    # https://no-color.org
    colour = given.output_format == "text" and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    out, messages = FORMATS[given.output_format](replace(report, colour=colour, quiet=given.quiet))
    sys.stdout.write(out)
    sys.stdout.flush()
    sys.stderr.write(messages)
    return int(report.failed(strict=given.strict))
