"""The job as a Deployment: its interval, its figures, its Lease, its end."""

from __future__ import annotations

import http.client
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import softtaint
from tests.softtaint import (
    GOOD,
    LEASE,
    Ended,
    Tainter,
    ended,
)
from tests.softtaint_nodes import FAIR, OVER
from tests.softtaint_runs import (
    DEAD,
    WANTED,
    Configured,
    Plain,
    config,
    plain,
    tainter,
    write,
)
from tests.testbed.fixtures import SERVERS
from tests.testbed.processes import free_port, until

__all__ = ["config", "plain", "tainter"]

pytestmark = SERVERS


class Service:
    """A Deployment's process."""

    def __init__(self, tainter: Tainter, config: Path) -> None:
        self.port = free_port()
        command = [word for word in tainter.command(config, f"--port={self.port}") if word != "--once"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, env=softtaint.environment(), stdout=pipe, stderr=subprocess.STDOUT, text=True
        )

    def ask(self, path: str) -> tuple[int, str]:
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            wire.request("GET", path)
            answer = wire.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            wire.close()

    def figure(self, name: str) -> float:
        """A series by its name and labels; -1 where it is not there."""
        lines = dict(line.rsplit(" ", 1) for line in self.ask("/metrics")[1].splitlines() if not line.startswith("#"))
        return float(lines.get(f"kubevirt_policy_softtaint_{name}", -1))

    def stop(self) -> Ended:
        self.process.terminate()
        return ended(self.process)


@pytest.fixture
def serve(tainter: Tainter, config: Configured) -> Iterator[Callable[..., Service]]:
    started: list[Service] = []

    def start(*arguments: Any, **changes: Any) -> Service:
        started.append(Service(tainter, config(*arguments, runAs="Deployment", **changes)))
        return started[-1]

    yield start
    for service in started:
        service.process.kill()
        service.process.communicate()


def test_a_deployment_works_at_its_interval_and_tells_its_figures(
    tainter: Tainter, serve: Callable[..., Service], plain: Plain
) -> None:
    service = serve(everySeconds=1)
    until(lambda: service.figure('passes_total{outcome="done"}') >= 1, "a pass")
    assert plain() == WANTED
    assert service.figure("leader") == 1
    assert service.figure('nodes{taints="2"}') == 2
    assert service.figure('changes_total{from_taints="0",to_taints="2"}') == 2
    assert service.figure('write_failures_total{reason="conflict"}') == 0
    assert service.figure('samples_rejected_total{reason="missing"}') == 0
    assert time.time() - service.figure("last_good_pass_timestamp_seconds") < 60
    assert service.figure("pass_duration_seconds_count") >= 1
    assert (service.ask("/healthz")[0], service.ask("/readyz")[0], service.ask("/else")[0]) == (200, 200, 404)
    write(tainter, "busy", [])
    until(lambda: plain()["busy"] == [OVER, FAIR], "the next pass")
    assert tainter.admin.get(LEASE)["spec"]["holderIdentity"]
    run = service.stop()
    assert (run.code, run.lines[-1]["message"]) == (GOOD, "stopped"), run.text
    assert not tainter.admin.get(LEASE)["spec"].get("holderIdentity")


def test_a_second_instance_stands_by_and_takes_over(serve: Callable[..., Service], plain: Plain) -> None:
    first = serve(everySeconds=1)
    until(lambda: first.figure("leader") == 1, "the first")
    second = serve(everySeconds=1)
    until(lambda: second.figure('passes_total{outcome="held"}') >= 1, "the second")
    assert (second.figure("leader"), second.ask("/readyz")[0]) == (0, 200)
    assert second.figure("last_good_pass_timestamp_seconds") > 0
    assert first.stop().code == GOOD
    until(lambda: second.figure("leader") == 1, "the second", seconds=20)
    until(lambda: second.figure('passes_total{outcome="done"}') >= 1, "its pass", seconds=20)
    assert plain() == WANTED


def test_a_deployment_goes_on_after_failures(serve: Callable[..., Service], plain: Plain) -> None:
    service = serve(DEAD, everySeconds=1)
    until(lambda: service.figure('passes_total{outcome="no_samples"}') >= 2, "two failures")
    assert service.figure("last_good_pass_timestamp_seconds") > 0  # when the Lease was made
    assert (service.ask("/healthz")[0], service.ask("/readyz")[0]) == (200, 200)
    assert set(map(len, plain().values())) == {0}
