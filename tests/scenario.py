"""Reads, plays, compares and rewrites scenarios; tests/cases/README.md describes the format."""

from __future__ import annotations

import base64
import difflib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = (sys.executable, "-P", "-m", "renderer")
COMMAND = "kubevirt-policy"
SECONDS = 120
MARKER = re.compile(r"-- (?P<name>\S+)(?: \((?P<form>[a-z0-9-]+)\))? --")
RESULTS = ("exit", "stdout", "stderr")


class Link(str):
    """The target of a symbolic link."""

    __slots__ = ()


Content = bytes | Link
Files = dict[str, Content]
"""Paths from the root, with `/`.  An empty folder is a path that ends with `/` and holds no bytes."""


class ScenarioError(ValueError):
    """The scenario itself is wrong, not the program."""


@dataclass(frozen=True)
class Section:
    """A marker line and the lines below it."""

    name: str
    form: str | None
    body: str
    line: int

    @property
    def content(self) -> Content:
        match self.form:
            case None:
                return self.body.encode()
            case "crlf":
                return self.body.replace("\n", "\r\n").encode()
            case "no-eol":
                return self.body.removesuffix("\n").encode()
            case "base64":
                return base64.b64decode(self.body)
            case "link":
                return Link(self.body.strip())
            case other:
                raise ScenarioError(f"line {self.line}: no such form: ({other})")


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    exit: int = 0
    stdout: bytes = b""
    stderr: bytes = b""


@dataclass
class Step:
    """Files to write, then a command to run, then what is expected of it."""

    files: Files
    run: Section
    expected: Result = Result()


@dataclass(frozen=True)
class Scenario:
    """One text file, taken apart."""

    head: str
    sections: Sequence[Section]
    steps: Sequence[Step]
    out: Mapping[str, Content | None]

    @property
    def uses(self) -> list[str]:
        return [line.removeprefix("use: ").strip() for line in self.head.splitlines() if line.startswith("use: ")]

    @property
    def needs(self) -> list[str]:
        """Programs that the tests bring along."""
        return [line.removeprefix("needs: ").strip() for line in self.head.splitlines() if line.startswith("needs: ")]

    @property
    def some(self) -> bool:
        return "files: some" in self.head.splitlines()


@dataclass
class Played:
    """What came of a scenario."""

    results: list[Result] = field(default_factory=list)
    written: Files = field(default_factory=dict)
    """The files as the scenario's own input and helper lines left them, the program's work aside."""
    files: Files = field(default_factory=dict)


# Reading


def parse(text: str) -> Scenario:
    """Take a scenario apart; ScenarioError where it is not one."""
    head, sections = _split(text)
    steps: list[Step] = []
    out: dict[str, Content | None] = {}
    files: Files = {}
    for section in sections:
        match section.name.partition("/"):
            case ["in", "/", path]:
                files[path] = section.content
            case ["run", "", ""]:
                steps.append(Step(files, section))
                files = {}
            case [name, "", ""] if name in RESULTS and steps and not files:
                steps[-1].expected = _with(steps[-1].expected, section)
            case ["out", "/", path] if steps:
                out[path] = None if section.form == "missing" else section.content
            case _:
                raise ScenarioError(f"line {section.line}: `{section.name}` is unknown or in the wrong place")
    if not steps or files:
        raise ScenarioError("nothing is run after the last input file")
    return Scenario(head, sections, steps, out)


def _split(text: str) -> tuple[str, list[Section]]:
    head: list[str] = []
    body = head
    found: list[tuple[re.Match[str], list[str], int]] = []
    for number, line in enumerate(io.StringIO(text, newline="\n"), start=1):
        if marker := MARKER.fullmatch(line.removesuffix("\n")):
            body = []
            found.append((marker, body, number))
        else:
            body.append(line)
    sections = [Section(marker["name"], marker["form"], "".join(body), number) for marker, body, number in found]
    return "".join(head), sections


def _with(result: Result, section: Section) -> Result:
    content = section.content
    if isinstance(content, Link):
        raise ScenarioError(f"line {section.line}: output cannot be a link")
    match section.name:
        case "exit":
            return Result(int(content), result.stdout, result.stderr)
        case "stdout":
            return Result(result.exit, content, result.stderr)
        case _:
            return Result(result.exit, result.stdout, content)


# Playing


def play(
    scenario: Scenario, folder: Path, shared: Path, program: Sequence[str] = PROGRAM, tools: Sequence[Path] = ()
) -> Played:
    """Run the scenario's commands in an empty folder; `shared` is where `use:` looks, `tools` come first on PATH."""
    root = folder / "root"
    root.mkdir()
    (folder / "home").mkdir()
    played = Played()
    environment = _environment(folder / "home", tools)
    for name in scenario.uses:
        if not (shared / name).is_dir():
            raise ScenarioError(f"use: {name}: no such folder")
        _write(root, read_tree(shared / name), played.written)
    for step in scenario.steps:
        _write(root, step.files, played.written)
        played.results.append(_run(step.run, root, played.written, program, environment))
    played.files = read_tree(root)
    return played


def read_tree(root: Path) -> Files:
    """Every file, link and empty folder below `root`."""
    found: Files = {}
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        for path in (here / name for name in [*names, *folders]):
            name = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[name] = Link(path.readlink())
            elif path.is_file():
                found[name] = path.read_bytes()
        if not folders and not names and here != root:
            found[here.relative_to(root).as_posix() + "/"] = b""
    return found


def _write(root: Path, files: Files, written: Files) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if isinstance(content, Link):
            path.symlink_to(content)
        else:
            path.write_bytes(content)
        written[name] = content


def _run(
    section: Section, root: Path, written: Files, program: Sequence[str], environment: Mapping[str, str]
) -> Result:
    *helpers, command = [line for line in section.body.splitlines() if line.strip()] or [""]
    where = root
    for line in helpers:
        match shlex.split(line):
            case ["cd", path]:
                where = root / path
            case words:
                _help(words, root, written, f"line {section.line}: {line}")
    words = shlex.split(command)
    if COMMAND not in words:
        raise ScenarioError(f"line {section.line}: the last line has to be a `{COMMAND}` command")
    at = words.index(COMMAND)
    settings = dict(word.split("=", 1) for word in words[:at])
    ended = subprocess.run(
        [*program, *words[at + 1 :]],
        cwd=where,
        env={**environment, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    stdout, stderr = (text.replace(bytes(root), b"<root>") for text in (ended.stdout, ended.stderr))
    return Result(ended.returncode, stdout, stderr)


def _help(words: Sequence[str], root: Path, written: Files, line: str) -> None:
    """Run one of the helper lines, and keep `written` in step."""
    match words:
        case ["rm", path]:
            (root / path).unlink()
            _prune(root, path)
            written.pop(path, None)
        case ["mv", old, new]:
            (root / new).parent.mkdir(parents=True, exist_ok=True)
            (root / old).rename(root / new)
            _prune(root, old)
            if old in written:
                written[new] = written.pop(old)
        case ["cp", old, new]:
            _write(root, {new: (root / old).read_bytes()}, written)
        case _:
            raise ScenarioError(f"{line}: only rm, mv, cp and cd are known here")


def _prune(root: Path, path: str) -> None:
    """Remove, as Git does, the folders that a removed file leaves empty."""
    for folder in (root / path).parents:
        if folder == root or any(folder.iterdir()):
            return
        folder.rmdir()


def _environment(home: Path, tools: Sequence[Path]) -> dict[str, str]:
    """The same on every machine: no colours, no settings of the person who runs the tests."""
    return {
        "COLUMNS": "120",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "PATH": os.pathsep.join([*map(str, tools), str(Path(sys.executable).parent), os.defpath]),
        "TERM": "dumb",
    }


# Comparing


def differences(scenario: Scenario, played: Played) -> list[str]:
    """What is not as the scenario says, each with what was expected and what came; empty where all is well."""
    found: list[str] = []
    for step, result in zip(scenario.steps, played.results, strict=True):
        command = step.run.body.splitlines()[-1]
        for name in RESULTS:
            wanted, got = getattr(step.expected, name), getattr(result, name)
            if wanted != got:
                found.append(f"{name} of `{command}`:\n{_diff(_text(wanted), _text(got))}")
    wanted_files = expected_files(scenario, played)
    for path in sorted(wanted_files.keys() | played.files.keys()):
        found += _file_difference(path, wanted_files.get(path), played.files.get(path))
    return found


def expected_files(scenario: Scenario, played: Played) -> Files:
    """What the scenario wrote itself, with `out/` on top.

    With `files: some`, overlays that the scenario does not name are taken as they are.
    """
    expected = dict(played.written)
    if scenario.some:
        expected |= {path: content for path, content in played.files.items() if path.startswith("overlays/")}
    for path, content in scenario.out.items():
        if content is None:
            expected.pop(path, None)
        else:
            expected[path] = content
    return expected


def _file_difference(path: str, wanted: Content | None, got: Content | None) -> list[str]:
    if wanted == got and type(wanted) is type(got):
        return []
    if got is None:
        return [f"{path}: missing"]
    if wanted is None:
        return [f"{path}: not expected\n{_text(got)}"]
    return [f"{path}: other content\n{_diff(_text(wanted), _text(got))}"]


def _text(content: Content | int) -> str:
    match content:
        case int():
            return f"{content}\n"
        case Link():
            return f"link to {content}\n"
        case _:
            return content.decode(errors="backslashreplace")


def _diff(wanted: str, got: str) -> str:
    lines = difflib.ndiff(wanted.splitlines(keepends=True), got.splitlines(keepends=True))
    return "".join(line if line.endswith("\n") else f"{line}\n(no line end)\n" for line in lines)


# Rewriting


def update(scenario: Scenario, played: Played) -> str:
    """The scenario's text with what came of it instead of what was expected."""
    parts = [scenario.head]
    results = iter(played.results)
    for section in scenario.sections:
        if section.name == "run":
            parts += [_marker(section.name), section.body, *_result(next(results))]
        elif section.name.startswith("in/"):
            parts += [_marker(section.name, section.form), section.body]
    return "".join([*parts, *_out(scenario, played)])


def _result(result: Result) -> Iterable[str]:
    if result.exit:
        yield _section("exit", b"%d\n" % result.exit)
    if result.stdout:
        yield _section("stdout", result.stdout)
    if result.stderr:
        yield _section("stderr", result.stderr)


def _out(scenario: Scenario, played: Played) -> Iterable[str]:
    """The files that are not as they were written and those that the scenario names, as far as they say something."""
    for path in sorted(played.written.keys() | played.files.keys() | scenario.out.keys()):
        got, written = played.files.get(path), played.written.get(path)
        if scenario.some and path.startswith("overlays/"):
            wanted = path in scenario.out
        else:
            wanted = got != written or (path in scenario.out and got is not None)
        if wanted:
            yield _marker(f"out/{path}", "missing") if got is None else _section(f"out/{path}", got)


def _section(name: str, content: Content) -> str:
    form, body = _form(content)
    return _marker(name, form) + body


def _form(content: Content) -> tuple[str | None, str]:
    """The plainest form that gives the content back."""
    if isinstance(content, Link):
        return "link", f"{content}\n"
    text = content.decode(errors="replace")
    plain: list[tuple[str | None, str]] = [(None, text), ("crlf", text.replace("\r\n", "\n")), ("no-eol", f"{text}\n")]
    for form, body in plain:
        readable = (not body or body.endswith("\n")) and "\r" not in body  # Git would make LF of CRLF
        if readable and _split(body)[1] == [] and Section("", form, body, 0).content == content:
            return form, body
    return "base64", base64.encodebytes(content).decode()


def _marker(name: str, form: str | None = None) -> str:
    return f"-- {name} ({form}) --\n" if form else f"-- {name} --\n"
