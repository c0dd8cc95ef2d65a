"""A group of rules as plain values, and what its expressions depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

RUNBOOKS = "docs/runbooks"
"""Where the page of each alert is, in the repository of this project."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A recording rule, or with `alert` an alert."""

    expr: str
    record: str = ""
    alert: str = ""
    wait: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.record or self.alert


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are evaluated one after the other; each sees what those before it recorded."""

    name: str
    interval: str
    rules: Sequence[Rule]


@dataclass(frozen=True, slots=True)
class Source:
    """How a cluster's series look: what `instance` of node series holds, and seconds between two scrapes."""

    node_names: Literal["name", "address"] = "name"
    scrape_interval: int = 30

    @property
    def window(self) -> str:
        """Four scrapes, at least a minute: one that is missed leaves enough for a rate."""
        return duration(max(60, 4 * self.scrape_interval))

    @property
    def slow_window(self) -> str:
        """For what is no input of the descheduler: five minutes, or four scrapes where that is longer."""
        return duration(max(300, 4 * self.scrape_interval))


def duration(seconds: int) -> str:
    """Seconds as Prometheus writes them: `30s`, `2m`."""
    return f"{seconds // 60}m" if seconds % 60 == 0 else f"{seconds}s"


def alert(name: str, expr: str, *, wait: str, summary: str, description: str, severity: str = "warning") -> Rule:
    """An alert with its severity, its words and the address of its runbook."""
    words = {"summary": summary, "description": description, "runbook_url": f"{RUNBOOKS}/{name}.md"}
    return Rule(expr, alert=name, wait=wait, labels={"severity": severity}, annotations=words)
