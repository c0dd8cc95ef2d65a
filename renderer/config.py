"""`.kubevirt-policy.yaml` at the repository root: tool version, paths, severities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from renderer import __version__, documents
from renderer.findings import SEVERITIES
from renderer.kinds.fields import Strict, leaves_repository, normal
from renderer.model import Severity, Tree, TreeError
from renderer.pipeline import Settings

FILE = ".kubevirt-policy.yaml"


class ConfigError(Exception):
    """The configuration keeps the command from running; `code` is a finding's, `place` names file and line."""

    def __init__(self, code: str, place: str, message: str) -> None:
        super().__init__(f"{place}: {message} [{code}]")
        self.code = code


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
        read = documents.read(FILE, tree.read(FILE))
    except TreeError as error:
        if error.missing:
            return Settings()
        raise ConfigError("config/unreadable", FILE, str(error)) from None
    if read.findings:
        first = read.findings[0]
        raise ConfigError("config/syntax", f"{FILE}:{first.position.line}:{first.position.column}", first.message)
    if len(read.documents) > 1:
        raise ConfigError("config/syntax", FILE, "the file holds more than one document")
    if not read.documents:
        return Settings()
    document = read.documents[0]
    try:
        config = msgspec.convert(document.data, Config)
    except msgspec.ValidationError as error:
        raise ConfigError("config/value", FILE, str(error).replace("$.", "").replace(" - at `$`", "")) from None
    return _settings(config)


def _settings(config: Config) -> Settings:
    _check_version(config.version)
    for name, path in (("policies", config.paths.policies), ("overlays", config.paths.overlays)):
        if leaves_repository(path) or normal(path) == ".":
            raise ConfigError("config/value", FILE, f"paths.{name}: {path} is not a folder inside the repository")
    policies, overlays = normal(config.paths.policies), normal(config.paths.overlays)
    if f"{policies}/".startswith(f"{overlays}/") or f"{overlays}/".startswith(f"{policies}/"):
        raise ConfigError("config/value", FILE, "paths.policies and paths.overlays must not lie inside each other")
    return Settings(policies, overlays, {code: _severity(code, name) for code, name in config.severity.items()})


def _severity(code: str, name: str) -> Severity:
    if code not in SEVERITIES:
        raise ConfigError("config/value", FILE, f"severity: there is no finding {code}")
    if SEVERITIES[code] is Severity.ERROR and name != Severity.ERROR:
        raise ConfigError("config/value", FILE, f"severity: {code} is an error, and errors cannot be lowered")
    return Severity(name)


def _check_version(wanted: str | None) -> None:
    if wanted is None:
        return
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        accepted = SpecifierSet(wanted)
    except InvalidSpecifier:
        raise ConfigError("config/value", FILE, f'version: {wanted} is not a range such as ">=0.1,<0.2"') from None
    if not accepted.contains(__version__, prereleases=True):
        message = (
            f"this repository wants kubevirt-policy {wanted}, and this is {__version__}: install one in that range"
        )
        raise ConfigError("config/version", FILE, message)
