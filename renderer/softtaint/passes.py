"""One pass: read nodes and samples, decide, write what changes, tell what happened."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from renderer.softtaint import events, log, prometheus, samples, taints
from renderer.softtaint.cluster import Cluster, Refused, Stopped, Unreachable
from renderer.softtaint.config import Config
from renderer.softtaint.lease import Clock
from renderer.softtaint.nodes import Node
from renderer.softtaint.plan import Choice, Plan, cleaning, plan
from renderer.softtaint.prometheus import PrometheusError
from renderer.softtaint.report import Outcome, Report
from renderer.softtaint.samples import AnswerError, Samples
from renderer.softtaint.writing import FAILURES, Result, Written, write

_NAMED = 100
"""Samples, taints of others and failures that are told one by one; the rest is counted."""


@dataclass(frozen=True)
class Pass:
    """What a pass needs.  `last_good` is when one was last good, None if never; `instance` names this process.

    `dry`: nothing is written, and what would be is told.  `may_write` says before each write whether the Lease is ours.
    """

    cluster: Cluster
    config: Config
    instance: str
    last_good: datetime | None
    clock: Clock
    dry: bool
    may_write: Callable[[], bool]

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
        server, query = self.config.source
        answer = prometheus.query(server, samples.expression(query), self.cluster.stop)
        found = samples.read(answer, self.config.stale_after_seconds)
        rejected = samples.compare(found, scope, {node.name for node in nodes})
        report.rejected.update(dict(samples.counts(rejected)))
        for one in rejected[:_NAMED]:
            log.warning("a sample cannot be used", node=one.node, reason=one.reason, value=one.value)
        if not scope & found.points.keys():
            raise AnswerError(f"no node has a valid sample: {dict(report.rejected)}; the query: {query}")
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
        selector = self.config.node_selector
        done = _pretended(changes) if self.dry else write(self.cluster, selector, changes, self.may_write)
        written: list[Written] = []
        for one in done:
            self._tell(one, planned, report)
            if one.result is Result.WRITTEN:
                written.append(one)
        _count(planned, {one.node.name: one.level for one in written}, report)
        told = [one for one in written if one.before != one.level]
        if told:
            report.events = events.record(self.cluster, told, self.instance)
        if report.outcome is Outcome.DONE and any(report.results[result] for result in FAILURES):
            report.outcome = Outcome.STOPPED if report.results[Result.STOPPED] else Outcome.UNWRITTEN

    def _tell(self, one: Written, planned: Plan, report: Report) -> None:
        report.results[one.result] += 1
        report.redone += one.redone
        fields = _fields(one, planned)
        if one.result in FAILURES:
            if sum(report.results[result] for result in FAILURES) > _NAMED:
                return
            log.error("a node could not be written", result=one.result, error=one.message, **fields)
        elif one.result is Result.WRITTEN:
            if one.before != one.level:  # else only what somebody did meanwhile was undone
                report.changes[one.before, one.level] += 1
            log.info("taints changed", **fields)
        elif one.result is Result.PRETENDED:
            log.info("taints would be changed", **fields)
        else:
            log.info("a node was not written", result=one.result, **fields)


def _fields(one: Written, planned: Plan) -> dict[str, object]:
    bounds = {"low": planned.low, "high": planned.high} if one.choice.points is not None else {}
    return {
        "node": one.node.name,
        "from": one.before,
        "to": one.level,
        "usage": one.choice.points,
        **bounds,
        "reason": one.choice.reason,
        "redone": one.redone,
    }


def _pretended(changes: Sequence[Choice]) -> list[Written]:
    return [Written(choice, Result.PRETENDED, choice.node, choice.level or 0) for choice in changes]


def _count(planned: Plan, written: Mapping[str, int], report: Report) -> None:
    """The nodes of the scope as they are at the end."""
    scope = [choice.node for choice in planned.choices if choice.node.in_scope]
    levels = {node.name: written.get(node.name, len(node.keys)) for node in scope}
    report.by_taints.update(levels.values())
    report.signal = len({levels[node.name] for node in scope if node.feasible}) > 1


def _tell_strangers(nodes: Sequence[Node], report: Report) -> None:
    for node in nodes:
        found = taints.strangers(node.taints)
        if found:
            report.strangers += 1
        if found and report.strangers <= _NAMED:
            log.warning(
                "somebody else set taints with our keys: they are left as they are", node=node.name, taints=found
            )
