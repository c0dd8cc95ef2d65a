"""The test bed of a checkout, which builds promtool; an installed program has none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
_BUILDS = Path("tests", "testbed", "build.py")
_CACHE = "kubevirt-policy-testbed"


def promtools(checkout: Path = CHECKOUT) -> Sequence[Path]:
    """Every promtool that the test bed has built, the newest first."""
    if not _there(checkout):
        return ()
    base = os.environ.get("XDG_CACHE_HOME")
    cache = (Path(base) if base else Path.home() / ".cache") / _CACHE
    return sorted([*cache.glob("promtool"), *cache.glob("*/promtool")], key=_modified, reverse=True)


def advice(checkout: Path = CHECKOUT) -> str:
    """How to get promtool."""
    install = "It comes with Prometheus: put it on PATH, or name it with --promtool."
    build = "In the checkout that this program runs from, python -m tests.testbed.build prometheus builds it as well."
    return f"{install} {build}" if _there(checkout) else install


def _there(checkout: Path) -> bool:
    return (checkout / _BUILDS).is_file()


def _modified(path: Path) -> float:
    return path.stat().st_mtime
