"""The job's configuration: one JSON file that the renderer writes and the job reads at its start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from renderer.softtaint.classify import FULL, Thresholds

NAME = "kubevirt-policy-softtaint"
"""Of the namespace and of everything in it: account, roles, ConfigMap, workload, Lease."""
FOLDER = f"/etc/{NAME}"
FILE = f"{FOLDER}/config.json"
PORT = 8080
"""Where a Deployment answers: /metrics, /healthz and /readyz."""
FORMAT = 1
"""Raised when a field changes its meaning, so that an older image refuses what it would misread."""

Mode: TypeAlias = Literal["Enforce", "DryRun", "RemoveOnly"]
RunAs: TypeAlias = Literal["CronJob", "Deployment"]
Points: TypeAlias = Annotated[int, Meta(ge=0, le=FULL)]
Seconds: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=4096)]


class _Block(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A mapping of known keys."""


class Prometheus(_Block, frozen=True, kw_only=True):
    """Where samples come from; both files are read anew in each pass."""

    url: Annotated[str, Meta(pattern=r"^https?://[^\s/?#]+(/[^\s?#]*)?$", max_length=2048)]
    ca_file: Text | None = None
    """Certificates that sign the server's; the system's own without it."""
    token_file: Text | None = None
    """Holds the bearer token; none is sent without it."""


class Lease(_Block, frozen=True, kw_only=True):
    """The Lease that one instance holds at a time; it also keeps when a pass last succeeded."""

    namespace: Text = NAME
    name: Text = NAME


class Bounds(_Block, frozen=True, kw_only=True):
    """Both thresholds in points: of the scale, or with `deviation` below and above the average."""

    low: Points
    high: Points
    deviation: bool


class Config(_Block, frozen=True, kw_only=True):
    """All that a pass depends on beside the cluster and its Prometheus.

    `query` and `prometheus` are there in every mode but `RemoveOnly`, which asks nobody.
    """

    format: Literal[1]
    mode: Mode
    run_as: RunAs
    every_seconds: Seconds
    query: Text | None = None
    thresholds: Bounds
    hysteresis_points: Points
    max_tainted_percent: Points
    missing_sample: Literal["Keep", "Remove"]
    stale_after_seconds: Seconds
    node_selector: dict[str, str]
    prometheus: Prometheus | None = None
    lease: Lease = Lease()

    @property
    def source(self) -> tuple[Prometheus, str]:
        """Whom to ask, and what.  Raises `ValueError` where there is nothing to be asked."""
        if self.prometheus is None or self.query is None:
            raise ValueError(f"mode {self.mode} asks no Prometheus")
        return self.prometheus, self.query

    @property
    def bounds(self) -> Thresholds:
        return Thresholds(self.thresholds.low, self.thresholds.high, self.thresholds.deviation)


class ConfigError(Exception):
    """Everything that is wrong with a configuration, one sentence each, with the path of the field."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def encode(config: Config) -> str:
    """The file's text: keys in alphabetical order, two blanks of indentation, one final line feed."""
    return json.dumps(msgspec.to_builtins(config), indent=2, sort_keys=True) + "\n"


def decode(text: bytes) -> Config:
    """The configuration in a file.  Raises `ConfigError` with all that is wrong."""
    try:
        data = json.loads(text)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ConfigError([f"not JSON: {error}"]) from error
    problems = [*_problems(data, Config, ""), *_unmeasured(data)]
    if not problems:
        return checked(msgspec.convert(data, Config))
    raise ConfigError(problems)


def checked(config: Config) -> Config:
    """The same, if its fields agree.  Raises `ConfigError`."""
    problems = list(_contradictions(config))
    if problems:
        raise ConfigError(problems)
    return config


def _problems(data: Any, block: type[Struct], path: str) -> Iterator[str]:
    """What is wrong in a block, field by field: msgspec itself stops at the first error."""
    if not isinstance(data, dict):
        yield f"{path.rstrip('.') or 'the file'}: expected an object"
        return
    types = get_type_hints(block, include_extras=True)
    fields = {field.encode_name: field for field in msgspec.structs.fields(block)}
    for name in sorted(set(data) - set(fields)):
        yield f"{path}{name}: unknown key; known are {', '.join(fields)}"
    for name, field in fields.items():
        wanted = types[field.name]
        if name not in data:
            if field.required:
                yield f"{path}{name}: missing"
        elif (inner := _block(wanted)) and not (data[name] is None and field.default is None):
            yield from _problems(data[name], inner, f"{path}{name}.")
        else:
            try:
                msgspec.convert(data[name], wanted)
            except msgspec.ValidationError as error:
                yield f"{path}{name}: {error}"


def _block(wanted: Any) -> type[Struct] | None:
    """The block that a field is, or may be."""
    kinds = [kind for kind in (wanted, *get_args(wanted)) if isinstance(kind, type) and issubclass(kind, Struct)]
    return kinds[0] if kinds else None


def _unmeasured(data: Any) -> Iterator[str]:
    """What only `RemoveOnly` does without."""
    if isinstance(data, dict) and data.get("mode") != "RemoveOnly":
        for name in ("query", "prometheus"):
            if data.get(name) is None:
                yield f"{name}: missing"


def _contradictions(config: Config) -> Iterator[str]:
    bounds = config.thresholds
    if not bounds.deviation and bounds.low > bounds.high:
        yield f"thresholds.low: {bounds.low} is above thresholds.high {bounds.high}"
    if config.prometheus is not None:
        yield from _unaddressed(config.prometheus.url)


def _unaddressed(url: str) -> Iterator[str]:
    """What the pattern of an address does not see."""
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0:
            yield "prometheus.url: it names no server, or port 0"
    except ValueError as error:
        yield f"prometheus.url: {error}"
