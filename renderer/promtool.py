"""Finds promtool, and runs it on rule files and on unit tests."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CACHE = "kubevirt-policy-testbed"
SECONDS = 300
_SPECIAL = re.compile(r'"@float:(-?\.inf|\.nan)@"')


@dataclass(frozen=True, slots=True)
class Ended:
    """What promtool said, without empty lines; `failed` where it found something."""

    failed: bool
    lines: tuple[str, ...] = ()


def find(given: str | None) -> Path | None:
    """The program: as given, on PATH, or where the test bed of this project puts what it builds."""
    if given is not None:
        found = shutil.which(given)
        return Path(found) if found else None
    on_path = shutil.which("promtool")
    return Path(on_path) if on_path else next(iter(sorted(_built(), key=_modified, reverse=True)), None)


def _built() -> Iterable[Path]:
    base = os.environ.get("XDG_CACHE_HOME")
    cache = (Path(base) if base else Path.home() / ".cache") / CACHE
    return [*cache.glob("promtool"), *cache.glob("*/promtool")]


def _modified(path: Path) -> float:
    return path.stat().st_mtime


def check_rules(program: Path, rules: Path) -> Ended:
    """Whether Prometheus would load a rule file."""
    return _run(program, "check", "rules", rules)


def test_rules(program: Path, test: Path) -> Ended:
    """Whether the unit tests of a file hold."""
    return _run(program, "test", "rules", test)


def _run(program: Path, verb: str, what: str, file: Path) -> Ended:
    command = [str(program), verb, what, file.name]
    try:
        ended = subprocess.run(
            command, cwd=file.parent, capture_output=True, text=True, timeout=SECONDS, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return Ended(True, (f"promtool did not end within {SECONDS} seconds",))
    lines = [line.rstrip() for line in f"{ended.stdout}\n{ended.stderr}".splitlines() if line.strip()]
    return Ended(ended.returncode != 0, tuple(lines))


def with_rules(test: dict[str, Any], files: Iterable[str]) -> str:
    """A file of unit tests that is about these rule files, as JSON, which promtool reads as well."""
    body = _plain({**test, "rule_files": list(files)})
    return _SPECIAL.sub(lambda found: found.group(1), json.dumps(body, ensure_ascii=False, indent=1))


def _plain(value: Any) -> Any:
    """JSON has no words for infinity and for what is no number; YAML has."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return f"@float:{'.nan' if math.isnan(value) else '.inf' if value > 0 else '-.inf'}@"
    return value
