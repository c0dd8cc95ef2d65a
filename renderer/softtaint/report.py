"""How a pass ended, what it did, and the line that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from renderer.softtaint.plan import Plan
from renderer.softtaint.writing import Result


class Outcome(IntEnum):
    """How a pass ended; the number is the exit code of a job."""

    DONE = 0
    UNWRITTEN = 1
    NO_SAMPLES = 3
    NO_API = 4
    STALE = 5
    HELD = 6
    STOPPED = 7

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass
class Report:
    """What a person asks for after an incident, of one pass."""

    outcome: Outcome = Outcome.DONE
    error: str = ""
    nodes: int = 0
    plan: Plan | None = None
    by_taints: Counter[int] = field(default_factory=Counter)
    """Nodes in scope by the number of taints that they have at the end."""
    changes: Counter[tuple[int, int]] = field(default_factory=Counter)
    results: Counter[str] = field(default_factory=Counter)
    redone: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    strangers: int = 0
    signal: bool = False
    """Whether the taints at the end tell nodes that pods can go to from each other: else they change nothing."""
    events: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether there were samples (or none was needed), and every node is as wanted or at least one was written.

        A pass that could write none is not: the taints grow old whatever the reason, and somebody has to be told.
        """
        written = self.results[Result.WRITTEN] > 0
        return self.outcome is Outcome.DONE or (self.outcome is Outcome.UNWRITTEN and written)


def summary(report: Report, requests: Mapping[str, int], mode: str) -> dict[str, object]:
    """The closing line; `requests` are those of the pass."""
    planned = report.plan
    figures: dict[str, object] = {} if planned is None else _figures(planned)
    return {
        "outcome": report.outcome.label,
        "exit_code": int(report.outcome),
        "error": report.error,
        "mode": mode,
        "nodes": report.nodes,
        **figures,
        "taints": {str(number): count for number, count in sorted(report.by_taints.items())},
        "changes": {f"{a}->{b}": count for (a, b), count in sorted(report.changes.items())},
        "writes": dict(sorted(report.results.items())),
        "redone": report.redone,
        "signal": report.signal,
        "rejected_samples": dict(report.rejected),
        "nodes_with_others_taints_of_our_keys": report.strangers,
        "events": dict(report.events),
        "requests": dict(sorted(requests.items())),
        "seconds": round(report.seconds, 3),
    }


def _figures(planned: Plan) -> dict[str, object]:
    return {
        "in_scope": planned.scope,
        "judged": planned.judged,
        "may_be_overutilized": planned.limit,
        "low": planned.low,
        "high": planned.high,
        "reasons": dict(sorted(Counter(str(choice.reason) for choice in planned.choices).items())),
    }
