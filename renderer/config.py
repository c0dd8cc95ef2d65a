"""`.kubevirt-policy.yaml` at the repository root: tool version, paths, severities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from renderer import __version__, documents
from renderer.findings import SEVERITIES
from renderer.kinds.fields import Strict, leaves_repository, normal
from renderer.mistakes import has_null, mistakes
from renderer.model import Finding, Origin, Position, Problem, Severity, Tree, TreeError, printable
from renderer.pipeline import Settings
from renderer.words import did_you_mean, shown

FILE = ".kubevirt-policy.yaml"
_NEARLY = re.compile(r"\.kubevirt[-_.]?policy\.ya?ml", re.IGNORECASE)


class ConfigError(Exception):
    """The configuration keeps the command from running; the message names file, line and what to do, for each fault."""


class Paths(Strict, frozen=True, kw_only=True):
    """Folders, from the repository root."""

    policies: Annotated[str, Meta(min_length=1)] = "policies"
    overlays: Annotated[str, Meta(min_length=1)] = "overlays"


class Config(Strict, frozen=True, kw_only=True):
    """What a repository decides for everybody who works in it."""

    version: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    paths: Paths = Paths()
    severity: dict[str, Literal["error", "warning", "note"]] = {}


def find_root(start: Path) -> Path:
    """The nearest folder, from `start` upwards, with the configuration file or a Git repository; else `start`."""
    for folder in (start, *start.parents):
        if (folder / FILE).is_file() or (folder / ".git").exists():
            return folder
    return start


def load(tree: Tree) -> Settings:
    """The repository's settings; the defaults without a file.  Raises `ConfigError`."""
    try:
        _refuse_other_names(tree)
        read = documents.read(FILE, tree.read(FILE))
    except TreeError as error:
        if error.missing:
            return Settings()
        raise ConfigError(f"{FILE}: {error} [config/unreadable]") from None
    if read.findings:
        raise ConfigError("\n".join(_told(one.position, one, "config/syntax") for one in read.findings))
    if len(read.documents) > 1:
        raise ConfigError(f"{FILE}: the file holds more than one document [config/syntax]")
    return _settings(Origin(read.documents[0])) if read.documents else Settings()


def _refuse_other_names(tree: Tree) -> None:
    for entry in tree.list(""):
        if entry.name != FILE and _NEARLY.fullmatch(entry.name):
            raise ConfigError(
                f"{entry.name}: the configuration is read from {FILE} alone. Rename it [config/unreadable]"
            )


def _settings(origin: Origin) -> Settings:
    config = _config(origin)
    if problems := [*_check_version(config, origin), *_check_paths(config, origin), *_check_severity(config, origin)]:
        raise _error(problems)
    severity = {code: Severity(name) for code, name in config.severity.items()}
    return Settings(normal(config.paths.policies), normal(config.paths.overlays), severity)


def _config(origin: Origin) -> Config:
    data = origin.document.data
    if not has_null(data):
        with suppress(msgspec.ValidationError):
            return msgspec.convert(data, Config)
    raise _error(mistakes(Config, origin))


def _error(problems: list[Problem]) -> ConfigError:
    problems.sort(key=lambda problem: problem.origin.position)
    told = (_told(one.origin.position, one, one.code.replace("policy/", "config/")) for one in problems)
    return ConfigError("\n".join(told))


def _told(place: Position, fault: Finding | Problem, code: str) -> str:
    return printable(f"{place.file}:{place.line}:{place.column}: {fault.message} [{code}]. {_help(fault)}")


def _help(fault: Finding | Problem) -> str:
    """What to do, where the words for policies do not fit this file."""
    if isinstance(fault, Finding) and fault.code == "policy/type":
        return "Begin it with version:, paths: or severity:."
    if fault.code == "policy/ambiguous-scalar":
        return "A severity is error, warning or note; put quotes around what is meant as a text."
    if "JSON Schema" in fault.help:
        return "Write a shorter one."
    return fault.help


def _check_version(config: Config, origin: Origin) -> Iterator[Problem]:
    if config.version is None:
        return
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    at = origin.below("version")
    try:
        accepted = SpecifierSet(config.version)
    except InvalidSpecifier:
        yield Problem(
            "config/value", at, f"{shown(config.version)} is no range of versions", 'Write it as in ">=0.1,<0.2".'
        )
        return
    if not accepted.contains(__version__, prereleases=True):
        message = f"this repository wants kubevirt-policy {config.version}, and this is {__version__}"
        yield Problem("config/version", at, message, "Install a version in that range.")


def _check_paths(config: Config, origin: Origin) -> Iterator[Problem]:
    given = {"policies": config.paths.policies, "overlays": config.paths.overlays}
    for name, path in given.items():
        if leaves_repository(path) or normal(path) == ".":
            message = f"{shown(path)} is not a folder inside the repository"
            help = "Write it from the repository root, without '..'."
            yield Problem("config/value", origin.below("paths", name), message, help)
    policies, overlays = (f"{normal(path)}/" for path in given.values())
    # Without regard to case, as some disks take it: a repository is checked out on any of them.
    one, other = policies.casefold(), overlays.casefold()
    if one.startswith(other) or other.startswith(one):
        message = f"the policies ({policies}) and the overlays ({overlays}) lie inside each other"
        yield Problem("config/value", origin.below("paths"), message, "Give each a folder of its own.")


def _check_severity(config: Config, origin: Origin) -> Iterator[Problem]:
    for code, name in config.severity.items():
        at = Origin(origin.document, ("severity", code), key=True)
        if code not in SEVERITIES:
            help = did_you_mean(code, SEVERITIES) or "Write the code that the finding ends with."
            yield Problem("config/value", at, f"there is no finding {shown(code)}", help)
        elif SEVERITIES[code] is Severity.ERROR is not Severity(name):
            message = f"{code} is an error, and errors cannot be lowered"
            yield Problem("config/value", at, message, "Remove the line, and mend what the finding says.")
