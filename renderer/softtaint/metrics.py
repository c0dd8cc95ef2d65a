"""The figures of a Deployment, for Prometheus.  Alerts rely on their names and labels."""

from __future__ import annotations

from datetime import datetime
from itertools import permutations
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from renderer.softtaint.report import Outcome, Report
from renderer.softtaint.samples import Reason
from renderer.softtaint.writing import FAILURES

_PREFIX: Final = "kubevirt_policy_softtaint_"
_LEVELS: Final = ("0", "1", "2")
_BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Every series that has a known label is there from the start, at 0: the first failure is an increase."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.passes = self._counter("passes", "Passes by how they ended.", "outcome")
        self.seconds = Histogram(
            f"{_PREFIX}pass_duration_seconds", "How long passes took.", registry=self.registry, buckets=_BUCKETS
        )
        self.nodes = Gauge(
            f"{_PREFIX}nodes", "Nodes in scope by their number of soft taints.", ["taints"], registry=self.registry
        )
        self.changes = self._counter("changes", "Nodes written, by taints.", "from_taints", "to_taints")
        self.failures = self._counter("write_failures", "Nodes that could not be written.", "reason")
        self.rejected = self._counter("samples_rejected", "Samples that could not be used.", "reason")
        self.last_good = self._gauge("last_good_pass_timestamp_seconds", "When a pass was last good (Unix time).")
        self.leader = self._gauge("leader", "1 while this instance holds the Lease.")
        for outcome in Outcome:
            self.passes.labels(outcome.label)
        for failure in FAILURES:
            self.failures.labels(failure.value)
        for reason in Reason:
            self.rejected.labels(reason.value)
        for before, after in permutations(_LEVELS, 2):
            self.changes.labels(before, after)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}{name}_total", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{_PREFIX}{name}", text, registry=self.registry)

    def record(self, report: Report, *, ran: bool) -> None:
        """Adds a pass, or a turn in which none could begin: that one took no time."""
        self.passes.labels(report.outcome.label).inc()
        if ran:
            self.seconds.observe(report.seconds)
        if report.plan is not None:
            for taints in _LEVELS:
                self.nodes.labels(taints).set(report.by_taints[int(taints)])
        for (before, after), count in report.changes.items():
            self.changes.labels(str(before), str(after)).inc(count)
        for failure in FAILURES:
            self.failures.labels(failure.value).inc(report.results[failure])
        for reason, count in report.rejected.items():
            self.rejected.labels(reason).inc(count)

    def leads(self, works: bool, *, holds: bool) -> None:
        """Whether this instance is at work, and holds the Lease for it; one that waits tells nothing of nodes, as it
        would tell what they were when it last had them."""
        self.leader.set(holds)
        if not works:
            self.nodes.clear()

    def good_at(self, moment: datetime | None) -> None:
        """When a pass was last good, whoever ran it; left as it is where that is not known."""
        if moment is not None:
            self.last_good.set(moment.timestamp())

    def text(self) -> bytes:
        return generate_latest(self.registry)
