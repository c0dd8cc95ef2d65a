"""The job as a Deployment: its interval, its figures, its Lease, its end."""

from __future__ import annotations

import http.client
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
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
    held,
    logged,
    patches,
    plain,
    tainter,
    write,
)
from tests.testbed.fixtures import SERVERS
from tests.testbed.nodes import NODES
from tests.testbed.processes import free_port, until
from tests.testbed.proxy import between, say

__all__ = ["config", "plain", "tainter"]

pytestmark = SERVERS


class Service:
    """A Deployment's process."""

    def __init__(self, tainter: Tainter, config: Path, *arguments: str) -> None:
        self.port = free_port()
        command = [word for word in tainter.command(config, f"--port={self.port}", *arguments) if word != "--once"]
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

    def start(*arguments: Any, kubeconfig: Path | None = None, **changes: Any) -> Service:
        more = [] if kubeconfig is None else [f"--kubeconfig={kubeconfig}"]
        started.append(Service(tainter, config(*arguments, runAs="Deployment", **changes), *more))
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
    assert service.figure('changes_total{from_taints="2",to_taints="0"}') == 0
    assert service.figure('changes_total{from_taints="0",to_taints="0"}') == -1
    assert service.figure('write_failures_total{reason="conflict"}') == 0
    assert service.figure('samples_rejected_total{reason="missing"}') == 0
    assert time.time() - service.figure("last_good_pass_timestamp_seconds") < 60
    assert service.figure("pass_duration_seconds_count") >= 1
    assert (service.ask("/healthz")[0], service.ask("/readyz")[0], service.ask("/else")[0]) == (200, 200, 404)
    write(tainter, "busy", [])
    until(lambda: plain()["busy"] == [OVER, FAIR], "the next pass")
    until(lambda: service.figure('passes_total{outcome="done"}') >= 4, "passes with nothing to do")
    assert tainter.admin.get(LEASE)["spec"]["holderIdentity"]
    run = service.stop()
    assert (run.code, run.lines[-1]["message"]) == (GOOD, "stopped"), run.text
    assert not tainter.admin.get(LEASE)["spec"].get("holderIdentity")
    passes = logged(run, "pass ended")
    assert sum(patches(run) > 0 for run in (replace(run, lines=[line]) for line in passes)) == 2  # each tells its own


def test_a_second_instance_stands_by_and_takes_over(serve: Callable[..., Service], plain: Plain) -> None:
    first = serve(everySeconds=1)
    until(lambda: first.figure("leader") == 1, "the first")
    second = serve(everySeconds=1)
    until(lambda: second.figure('passes_total{outcome="held"}') >= 1, "the second")
    assert (second.figure("leader"), second.ask("/readyz")[0]) == (0, 200)
    assert second.figure("pass_duration_seconds_count") == 0
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


def test_an_instance_that_lost_the_lease_tells_nothing_of_nodes(
    tainter: Tainter, serve: Callable[..., Service], plain: Plain
) -> None:
    service = serve(everySeconds=1)
    until(lambda: service.figure('nodes{taints="2"}') == 2, "a pass")
    held(tainter, "thief", seconds=0)
    until(lambda: service.figure("leader") == 0, "the loss", seconds=20)
    until(lambda: service.figure('nodes{taints="2"}') == -1, "its figures", seconds=20)
    assert "the Lease is lost" in service.stop().text
    assert plain() == WANTED


def test_an_outage_does_not_cost_a_whole_interval(
    tainter: Tainter, serve: Callable[..., Service], plain: Plain
) -> None:
    with between(tainter.account, tainter.folder) as (proxy, kubeconfig):
        proxy.rule = lambda exchange, _: say(403, "not now") if exchange.path.startswith(f"{NODES}?") else None
        service = serve(kubeconfig=kubeconfig, everySeconds=3600)
        until(lambda: service.figure('passes_total{outcome="no_api"}') == 1, "the outage")
        assert service.ask("/readyz")[0] == 503
        proxy.rule = lambda _exchange, _count: None
        until(lambda: service.figure('passes_total{outcome="done"}') == 1, "the next pass", seconds=20)
        assert service.ask("/readyz")[0] == 200
        assert plain() == WANTED
