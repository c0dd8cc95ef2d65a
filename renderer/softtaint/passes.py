"""One pass: read nodes and samples, decide, write what changes, tell what happened."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum

from renderer.softtaint import events, log, prometheus, samples, taints
from renderer.softtaint.cluster import Cluster, Refused, Stopped, Unreachable
from renderer.softtaint.config import Config
from renderer.softtaint.lease import Clock
from renderer.softtaint.nodes import Node
from renderer.softtaint.plan import Choice, Plan, cleaning, plan
from renderer.softtaint.prometheus import PrometheusError
from renderer.softtaint.samples import AnswerError, Samples
from renderer.softtaint.writing import FAILURES, Result, Written, write

_NAMED = 100
"""Samples that are told one by one; the rest is counted."""


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

    @property
    def good(self) -> bool:
        """Whether there were samples, and every node was tried."""
        return self in (Outcome.DONE, Outcome.UNWRITTEN)


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
    events: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass(frozen=True)
class Pass:
    """What a pass needs.  `last_good` is when one was last good, None if never; `instance` names this process.

    `dry`: nothing is written, and what would be is told.
    """

    cluster: Cluster
    config: Config
    instance: str
    last_good: datetime | None
    clock: Clock
    dry: bool

    def run(self) -> Report:
        """Never raises but for a bug."""
        report, began = Report(), time.monotonic()
        try:
            self._run(report)
        except Stopped:
            report.outcome = Outcome.STOPPED
        except (Refused, Unreachable) as error:
            report.outcome, report.error = Outcome.NO_API, str(error)
        report.seconds = time.monotonic() - began
        return report

    def _run(self, report: Report) -> None:
        nodes = self.cluster.nodes(self.config.node_selector)
        report.nodes = len(nodes)
        _tell_strangers(nodes, report)
        planned = self._plan(nodes, report)
        if planned is not None:
            report.plan = planned
            self._write(planned, report)

    def _plan(self, nodes: Sequence[Node], report: Report) -> Plan | None:
        """None where nothing is to be changed."""
        scope = {node.name for node in nodes if node.in_scope}
        if self.config.mode == "RemoveOnly":
            return cleaning(nodes)
        if len(scope) < 2:
            return plan(nodes, {}, self.config)
        try:
            found = self._samples(scope, nodes, report)
        except (PrometheusError, AnswerError) as error:
            report.error = str(error)
            return self._without_samples(nodes, report)
        return plan(nodes, found.points, self.config)

    def _samples(self, scope: set[str], nodes: Sequence[Node], report: Report) -> Samples:
        """Raises `AnswerError` too where no node of the scope has a valid one."""
        answer = prometheus.query(self.config.prometheus, samples.expression(self.config.query))
        found = samples.read(answer, self.config.stale_after_seconds)
        rejected = samples.compare(found, scope, {node.name for node in nodes})
        report.rejected.update(dict(samples.counts(rejected)))
        for one in rejected[:_NAMED]:
            log.warning("a sample cannot be used", node=one.node, reason=one.reason, value=one.value)
        if not scope & found.points.keys():
            raise AnswerError(f"no node has a valid sample: {dict(report.rejected)}; the query: {self.config.query}")
        return found

    def _without_samples(self, nodes: Sequence[Node], report: Report) -> Plan | None:
        """Old taints are better than none for a while, and worse than none after that."""
        longest = timedelta(seconds=self.config.stale_after_seconds)
        if self.last_good is None or self.clock() - self.last_good <= longest:
            report.outcome = Outcome.NO_SAMPLES
            return None
        report.outcome = Outcome.STALE
        return cleaning(nodes)

    def _write(self, planned: Plan, report: Report) -> None:
        changes = [choice for choice in planned.choices if choice.wanted is not None]
        after = {choice.node.name: len(choice.node.keys) for choice in planned.choices if choice.node.in_scope}
        dry = self.dry
        found: list[Written] = []
        for one in _pretended(changes) if dry else write(self.cluster, self.config.node_selector, changes):
            self._tell(one, planned, report, dry=dry)
            if one.result is Result.WRITTEN:
                found.append(one)
                if one.node.name in after and not dry:
                    after[one.node.name] = one.level
        report.by_taints.update(after.values())
        if found and not dry:
            report.events = events.record(self.cluster, found, self.instance)
        if report.outcome is Outcome.DONE and any(report.results[result] for result in FAILURES):
            report.outcome = _failed(report)

    def _tell(self, one: Written, planned: Plan, report: Report, *, dry: bool) -> None:
        report.results[one.result] += 1
        report.redone += one.redone
        fields = _fields(one, planned)
        if one.result in FAILURES:
            log.error("a node could not be written", result=one.result, error=one.message, **fields)
        elif one.result is Result.WRITTEN:
            report.changes[len(one.node.keys), one.level] += 1
            log.info("taints would be changed" if dry else "taints changed", **fields)
        else:
            log.info("a node was not written", result=one.result, **fields)


def _fields(one: Written, planned: Plan) -> dict[str, object]:
    bounds = {"low": planned.low, "high": planned.high} if one.choice.points is not None else {}
    return {
        "node": one.node.name,
        "from": len(one.node.keys),
        "to": one.level,
        "usage": one.choice.points,
        **bounds,
        "reason": one.choice.reason,
        "redone": one.redone,
    }


def _pretended(changes: Sequence[Choice]) -> list[Written]:
    return [Written(choice, Result.WRITTEN, choice.node, choice.level or 0) for choice in changes]


def _failed(report: Report) -> Outcome:
    if report.results[Result.STOPPED]:
        return Outcome.STOPPED
    return Outcome.UNWRITTEN


def _tell_strangers(nodes: Sequence[Node], report: Report) -> None:
    for node in nodes:
        found = taints.strangers(node.taints)
        if found:
            report.strangers += 1
            log.warning(
                "somebody else set taints with our keys: they are left as they are", node=node.name, taints=found
            )


def summary(report: Report, cluster: Cluster, mode: str) -> dict[str, object]:
    """The closing line."""
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
        "rejected_samples": dict(report.rejected),
        "nodes_with_others_taints_of_our_keys": report.strangers,
        "events": dict(report.events),
        "requests": dict(sorted(cluster.requests.items())),
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
