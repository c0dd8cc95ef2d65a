"""The built-in recording rules and alerts, by catalogue name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from renderer.catalog import load_aware, rate_limits, rebalancing
from renderer.catalog.model import Group, Rule, Source

__all__ = ["CATALOG", "NEEDS", "SINCE", "Group", "Rule", "Source", "groups"]

CATALOG: Mapping[str, Callable[[Source], Group]] = {
    "load-aware": load_aware.group,
    "rate-limits": rate_limits.group,
    "rebalancing": rebalancing.group,
}
"""In the order in which they are documented; each becomes one object of a cluster."""

NEEDS: Mapping[str, tuple[str, ...]] = {"rebalancing": ("load-aware", "rate-limits")}
"""What a group's rules and alerts read: it comes along."""

SINCE: Mapping[str, tuple[int, int]] = {"load-aware": (2, 26), "rebalancing": (2, 20)}
"""The first Prometheus that knows all of a group's functions and syntax, where that is not every 2.x."""


def groups(names: Iterable[str], source: Source) -> dict[str, Group]:
    """The named groups and those that they need, by catalogue name, each once."""
    wanted = {name for given in names for name in (given, *NEEDS.get(given, ()))}
    return {name: _group(name, source) for name in CATALOG if name in wanted}


@lru_cache(maxsize=64)
def _group(name: str, source: Source) -> Group:
    return CATALOG[name](source)
