"""The Lease where its renewals hang, fail or come too late; and what it says of times that cannot be."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from renderer.softtaint import config as configuration
from renderer.softtaint import lease
from renderer.softtaint.job import Job
from renderer.softtaint.lease import LAST_GOOD
from renderer.softtaint.stop import Stop
from tests.softtaint import GOOD, HELD, LEASE, NO_SAMPLES, Tainter
from tests.softtaint_nodes import FAIR
from tests.softtaint_runs import DEAD, Configured, config, held, plain, tainter
from tests.testbed.fixtures import SERVERS
from tests.testbed.nodes import NODES, fleet, small
from tests.testbed.processes import until
from tests.testbed.proxy import Exchange, Proxy, Rule, after, between

__all__ = ["config", "plain", "tainter"]

pytestmark = SERVERS

LASTS, MARGIN = 4, 1
"""Seconds, instead of the program's own: a test that waits for the end of a Lease is to be short."""


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DURATION": LASTS, "_MARGIN": MARGIN, "_RENEW": 0.5, "_AGAIN": 0.2, "_PATIENCE": 1.0}.items():
        monkeypatch.setattr(lease, name, value)


@pytest.fixture
def through(tainter: Tainter) -> Iterator[Callable[[Path, Rule], tuple[Job, Proxy]]]:
    """A job of this process, through a proxy with a rule."""
    with between(tainter.account, tainter.folder) as (proxy, kubeconfig):

        def make(path: Path, rule: Rule) -> tuple[Job, Proxy]:
            proxy.rule = rule
            return Job(configuration.decode(path.read_bytes()), kubeconfig, Stop(), alone=False), proxy

        yield make


def said(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]  # others speak of cut connections


@pytest.mark.usefixtures("brief", "plain")
def test_nothing_is_written_after_a_lease_whose_renewals_hang(
    tainter: Tainter,
    config: Configured,
    through: Callable[[Path, Rule], tuple[Job, Proxy]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    over, patched, taken = Event(), list[float](), list[float]()

    def swallow(exchange: Exchange) -> None:
        over.wait(30)
        exchange.cut()

    def slowly(exchange: Exchange) -> None:
        patched.append(time.monotonic())
        time.sleep(0.8)
        exchange.forward()

    def rule(exchange: Exchange, _count: int) -> Any:
        if exchange.method == "POST" and exchange.path.endswith("/leases"):
            return after(lambda: taken.append(time.monotonic()))
        if exchange.method == "PUT":
            return swallow
        return slowly if exchange.method == "PATCH" and NODES in exchange.path else None

    with fleet(tainter.admin, [small(f"taken-{number:02}", taints=[FAIR]) for number in range(40)]):
        job, _ = through(config(mode="RemoveOnly"), rule)
        try:
            code = job.once()
        finally:
            over.set()
            job.cluster.close()
    lines = said(capsys.readouterr().err)
    assert (code, lines[-1]["outcome"]) == (HELD, "held")
    assert 4 <= len(patched) < 40
    assert max(patched) < taken[0] + LASTS
    assert any(line["message"] == "the Lease is lost" for line in lines)


@pytest.mark.usefixtures("brief", "plain")
def test_a_good_pass_is_not_noted_in_the_lease_of_another(
    tainter: Tainter, config: Configured, through: Callable[[Path, Rule], tuple[Job, Proxy]]
) -> None:
    job, _ = through(config(), lambda _exchange, _count: None)
    with job:
        assert job.acquire() is None
        job.note()
        until(lambda: LAST_GOOD in tainter.admin.get(LEASE)["metadata"].get("annotations", {}), "the note")
        tainter.admin.merge(LEASE, {"metadata": {"annotations": {LAST_GOOD: None}}})
        held(tainter, "thief", seconds=0)
        job.note()
        until(lambda: job.stop.lost, "the loss", seconds=10)
        job.note()
        assert not job.holds
    found = tainter.admin.get(LEASE)
    assert found["spec"]["holderIdentity"] == "thief"
    assert LAST_GOOD not in found["metadata"].get("annotations", {})


@pytest.mark.usefixtures("brief", "plain")
def test_a_keeper_that_fails_stops_the_job(
    config: Configured,
    through: Callable[[Path, Rule], tuple[Job, Proxy]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever it is: here an answer that no API server gives."""
    found: list[Job] = []

    def rubbish(exchange: Exchange) -> None:
        body = {"metadata": 5, "spec": {"holderIdentity": found[0].lease.identity}}
        exchange.answer(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    def rule(exchange: Exchange, count: int) -> Any:
        return rubbish if exchange.method == "GET" and exchange.path == LEASE and count else None

    job, _ = through(config(), rule)
    found.append(job)
    assert job.acquire() is None
    job.note()
    until(lambda: job.stop.lost, "the loss", seconds=10)
    job.release(good=False)
    job.cluster.close()
    [line] = [line for line in said(capsys.readouterr().err) if line["message"] == "the Lease is lost"]
    assert "AttributeError" in line["reason"]


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("seconds", [3600, None], ids=["in-an-hour", "at-the-end-of-time"])
def test_a_lease_renewed_in_the_future_is_taken(tainter: Tainter, config: Configured, seconds: int | None) -> None:
    assert tainter.run(config()).code == GOOD
    held(tainter, "dead", seconds=20)
    assert tainter.run(config()).code == HELD
    held(tainter, "dead", seconds=-20)  # a clock may be ahead of ours
    assert tainter.run(config()).code == HELD
    held(tainter, "dead", seconds=-(seconds or 0))
    if seconds is None:
        tainter.admin.merge(LEASE, {"spec": {"renewTime": "9999-12-31T23:59:59.999999Z"}})
    assert tainter.run(config()).code == GOOD


@pytest.mark.usefixtures("plain")
def test_a_good_pass_in_the_future_was_now_at_most(
    tainter: Tainter, config: Configured, through: Callable[[Path, Rule], tuple[Job, Proxy]]
) -> None:
    assert tainter.run(config()).code == GOOD
    tainter.admin.merge(LEASE, {"metadata": {"annotations": {LAST_GOOD: "9999-12-31T23:59:59-12:00"}}})
    job, _ = through(config(DEAD), lambda _exchange, _count: None)
    with job:
        job.lease.look()
        assert job.lease.last_good is not None
        assert job.lease.last_good <= lease.now()
    assert tainter.run(config(DEAD)).code == NO_SAMPLES
