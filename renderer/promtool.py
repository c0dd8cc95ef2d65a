"""Finds promtool, and runs it on rule files and on unit tests."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from renderer import documents

SECONDS = 300
_RULE = re.compile(
    r'.*: group ("(?:[^"\\]|\\.)*"), rule ([0-9]+), "(?:[^"\\]|\\.)*": '
    r'(?:(annotation|label) ("(?:[^"\\]|\\.)*"))?'
)
_ALERT = re.compile(r"\s+alertname: (.*), time: ")
_EXPR = re.compile(r'\s+expr: ("(?:[^"\\]|\\.)*"), time: ')
_NAMING = re.compile(r"\s+name: .*,")
"""The name of the group of tests that failed; what failed in it follows."""
_TITLES = ("Processing", "Checking", "  SUCCESS", "  FAILED")
_INDENT = " " * 5
"""What goes on begins with more blanks than what failed."""


class CannotStart(Exception):
    """There is a file, and it is no program that runs here."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What promtool said, without empty lines; `failed` where it found something.

    `unread` says why it was not asked at all.
    """

    failed: bool
    lines: tuple[str, ...] = ()
    unread: str = ""


def find(given: str | None, built: Iterable[Path] = ()) -> Path | None:
    """The program: as given; else on PATH; else the first of those that were built."""
    if found := shutil.which(given or "promtool"):
        return Path(found).absolute()
    return next(iter(built), None) if given is None else None


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that failed, in promtool's lines, and what it is about: a rule by its group and number, or by name.

    `text` is the label or annotation that is wrong, as `("annotations", "summary")`; `expr` is that of a test, which
    reads records.
    """

    lines: tuple[str, ...]
    rule: tuple[str, int] | None = None
    text: tuple[str, str] | None = None
    alert: str = ""
    expr: str = ""


def is_promtool(program: Path) -> bool:
    """Whether the program says that it is promtool.  Raises `CannotStart`."""
    return any(line.startswith("promtool, version") for line in _ended(program, ["--version"], program.parent).lines)


def check_rules(program: Path, rules: Path, flags: Iterable[str]) -> Ended:
    """Whether a Prometheus with these feature flags would load a rule file.  Raises `CannotStart`, as below."""
    return _run(program, "check", rules, flags)


def test_rules(program: Path, test: Path, flags: Iterable[str]) -> Ended:
    """Whether the unit tests of a file hold."""
    return _run(program, "test", test, flags)


def failures(lines: Iterable[str]) -> list[Said]:
    """What promtool said, taken apart into what failed."""
    found: list[Said] = []
    before: list[str] = []
    for line in lines:
        if _NAMING.fullmatch(line):
            before = [line]
        elif (said := _begins(line, before)) is not None:
            found.append(said)
            before = []
        elif found and line.startswith(_INDENT):
            found[-1] = replace(found[-1], lines=(*found[-1].lines, line))
        elif not line.startswith(_TITLES):
            found.append(Said((*before, line)))
            before = []
    return found


def _begins(line: str, before: list[str]) -> Said | None:
    lines = (*before, line)
    if match := _RULE.match(line):
        text = (f"{match[3]}s", _unquoted(match[4])) if match[3] else None
        return Said(lines, (_unquoted(match[1]), int(match[2])), text)
    if match := _ALERT.match(line):
        return Said(lines, alert=match[1])
    if match := _EXPR.match(line):
        return Said(lines, expr=_unquoted(match[1]))
    return None


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:  # Go writes some characters otherwise than JSON
        return text[1:-1]


def _run(program: Path, verb: str, file: Path, flags: Iterable[str]) -> Ended:
    enabled = [f"--enable-feature={flag}" for flag in flags]
    return _ended(program, [*enabled, verb, "rules", file.name], file.parent)


def _ended(program: Path, arguments: Sequence[str], folder: Path) -> Ended:
    command = [str(program), *arguments]
    try:
        ended = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return Ended(True, (f"promtool did not end within {SECONDS} seconds",))
    except OSError as error:
        raise CannotStart(f"{program} cannot be run: {error.strerror}") from None
    lines = [line.rstrip() for line in f"{ended.stdout}\n{ended.stderr}".splitlines() if line.strip()]
    if ended.returncode < 0:
        lines.append(f"promtool was ended by the signal {_signal(-ended.returncode)}")
    return Ended(ended.returncode != 0, tuple(lines))


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no name
        return str(number)


def with_rules(test: str, files: Iterable[str]) -> str:
    """A file of unit tests with these rule files in place of its own.

    Raises `ValueError` for what is no YAML, and for tests that promtool would pass over in silence.
    The rest stays as it is: promtool reads YAML by other rules than we do, `2e9` as a number.
    """
    text = test.removeprefix("\ufeff")
    found = documents.read_foreign("", text.encode(), documents.GENERATED)
    for finding in found.findings:
        raise ValueError(f"line {finding.position.line}: {finding.message}")
    if not found.documents or not found.documents[0].data.get("tests"):
        raise ValueError("it holds no tests")
    if len(found.documents) > 1:
        raise ValueError("it holds several documents, of which promtool reads the first")
    return documents.with_key(text, "rule_files", json.dumps(list(files)), documents.GENERATED)
