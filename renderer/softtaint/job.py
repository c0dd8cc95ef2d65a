"""The job: a pass under the Lease, and what is kept of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from renderer.softtaint import log
from renderer.softtaint.cluster import Cluster, ConfigurationError, Refused, Stopped, Unreachable
from renderer.softtaint.config import Config, ConfigError
from renderer.softtaint.lease import Clock, Keeper, Lease, now
from renderer.softtaint.passes import Pass
from renderer.softtaint.report import Outcome, Report, summary
from renderer.softtaint.stop import Stop
from renderer.softtaint.writing import THREADS


class Job:
    """A cluster, a configuration and a Lease.  `alone`: the Lease is only looked at, as nothing is to be written."""

    def __init__(self, config: Config, kubeconfig: Path | None, stop: Stop, *, alone: bool, clock: Clock = now) -> None:
        """Raises `ConfigError` where no cluster is known."""
        self.config = config
        self.stop = stop
        self._alone = alone
        self._clock = clock
        self._keeper: Keeper | None = None
        self._told: Counter[str] = Counter()
        try:
            self.cluster = Cluster(kubeconfig, THREADS + 1, stop)
        except ConfigurationError as error:
            raise ConfigError([str(error)]) from error
        self.lease = Lease(self.cluster, config.lease, clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release(good=False)
        self.cluster.close()

    def once(self) -> int:
        """One pass under the Lease; the exit code."""
        report = self.acquire()
        if report is None:
            report = self.run()
            self.release(good=report.good)
        self.tell(report)
        return int(report.outcome)

    @property
    def holds(self) -> bool:
        """Whether the Lease is ours."""
        return self._keeper is not None and not self.stop.lost

    @property
    def waits(self) -> bool:
        """Whether it can do nothing before it has the Lease."""
        return not self._alone and not self.holds

    def acquire(self) -> Report | None:
        """Takes the Lease and keeps it; the report of a pass that cannot be, where that fails."""
        if self.holds:
            return None
        self.release(good=False)
        if self._keeper is not None:
            return Report(Outcome.NO_API, "the last renewal of the Lease has not ended")
        self.stop.resume()
        try:
            if self._alone:
                self.lease.look()
            elif not self.lease.take():
                return Report(Outcome.HELD, f"the Lease is held by {self.lease.holder}")
            else:
                self._keeper = Keeper(self.lease, self.stop)
        except (Refused, Unreachable) as error:
            return Report(Outcome.NO_API, str(error))
        except Stopped:
            return Report(Outcome.STOPPED)
        return None

    def run(self) -> Report:
        """One pass, while the Lease is ours."""
        last_good = self.lease.last_good
        dry = self._alone or self.config.mode == "DryRun"
        report = Pass(
            self.cluster, self.config, self.lease.identity, last_good, self._clock, dry, self._may_write
        ).run()
        if self.stop.lost and report.outcome is Outcome.STOPPED:
            report.outcome, report.error = Outcome.HELD, "the Lease was lost during the pass"
        return report

    def _may_write(self) -> bool:
        """Asked before each write, whatever its keeper does: a renewal that hangs keeps nobody's Lease."""
        if self.lease.left <= 0:
            self.stop.lose()
        return not self.stop.lost

    def release(self, *, good: bool) -> None:
        """Gives the Lease back, if it is ours."""
        if self._keeper is not None and self._keeper.end():
            self._keeper = None
            if not self.stop.lost and self.lease.left > 0:
                self.lease.give(good=good)

    def note(self) -> None:
        """Notes in the Lease that a pass was good, soon and without waiting for it; not in one that is lost."""
        if self._keeper is not None and self.holds:
            self.lease.note()
            self._keeper.hurry()

    def tell(self, report: Report) -> None:
        """The closing line of a pass."""
        say = log.info if report.outcome is Outcome.DONE else log.error
        requests = Counter(self.cluster.requests)
        say("pass ended", **summary(report, requests - self._told, self.config.mode))
        self._told = requests
