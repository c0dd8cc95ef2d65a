"""The job run as its rendered account: what the tests of `test_real_softtaint*.py` share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from renderer.softtaint import moments
from tests import softtaint
from tests.softtaint import LEASE, Ended, Tainter, installed
from tests.softtaint_nodes import FAIR, OVER
from tests.testbed.access import Access
from tests.testbed.monitoring import Monitoring
from tests.testbed.nodes import JSON_PATCH, NODES, Object, fleet, listed, small, taints
from tests.testbed.proxy import Exchange, Proxy, Rule, between

Plain = Callable[[], dict[str, list[Object]]]
Configured = Callable[..., Path]

PLAIN = {"idle": "0.10", "fair": "0.30", "busy": "0.80", "busier": "0.90"}
"""The samples of the four nodes of most tests."""
WANTED: dict[str, list[Object]] = {"idle": [], "fair": [FAIR], "busy": [OVER, FAIR], "busier": [OVER, FAIR]}
DEAD = "http://127.0.0.1:1"
OLD = 200
"""Seconds: less than what Prometheus still shows, more than the configuration of that test allows."""


@pytest.fixture(scope="module")
def tainter(apiserver: Access, prometheus: Monitoring, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tainter]:
    """Installed, with the series of all tests in place."""
    moment = int((time.time() - OLD) * 1000)
    series = {f'load{{instance="{name}"}}': value for name, value in PLAIN.items()}
    odd = {"nan": "NaN", "inf": "+Inf", "high": "1.01", "low": "-0.01", "good": "0.10", "better": "0.90"}
    series |= {f'odd{{instance="{name}"}}': value for name, value in odd.items()}
    series |= {f'odd{{instance="twice",copy="{copy}"}}': "0.5" for copy in "ab"}
    series |= {
        'odd{instance="named.example.com"}': "0.5",
        'odd{instance="stranger"}': "0.5",
        'odd{instance="other"}': "7",
    }
    series |= {'odd{instance="old"}': f"0.5 {moment}", 'nothing{instance="stranger"}': "0.5"}
    prometheus.expose(series)
    with installed(apiserver, tmp_path_factory.mktemp("softtaint")) as found:
        yield found


@pytest.fixture
def plain(tainter: Tainter) -> Iterator[Plain]:
    """Four nodes, without taints; what is given reads theirs."""
    softtaint.remove(tainter.admin, LEASE)
    with fleet(tainter.admin, [small(name) for name in PLAIN]):
        yield lambda: {name: taints(node) for name, node in listed(tainter.admin).items()}


@pytest.fixture
def config(tainter: Tainter, prometheus: Monitoring) -> Configured:
    """A configuration with a share that all over-utilized nodes are within."""

    def make(url: str | None = prometheus.url, **changes: Any) -> Path:
        return tainter.config(url, **{"maxTaintedPercent": 100, "hysteresisPoints": 0, **changes})

    return make


def patches(run: Ended) -> int:
    """How many patches were sent, whatever was answered, those of Events left out."""
    return sum(count for name, count in run.summary["requests"].items() if name.startswith("PATCH"))


def logged(run: Ended, message: str) -> list[dict[str, Any]]:
    return [line for line in run.lines if line["message"] == message]


def behind(
    tainter: Tainter, rule: Rule, path: Path, *arguments: str, meddle: Callable[[Proxy], None] | None = None
) -> tuple[Ended, Proxy]:
    """A run through a proxy with a rule."""
    with between(tainter.account, tainter.folder) as (proxy, kubeconfig):
        proxy.rule = rule
        if meddle is not None:
            meddle(proxy)
        return tainter.run(path, f"--kubeconfig={kubeconfig}", *arguments), proxy


def on(method: str, ending: str, *actions: Any) -> Rule:
    """Those actions for the first requests of that method to a path that ends so."""

    def rule(exchange: Exchange, count: int) -> Any:
        hit = exchange.method == method and exchange.path.partition("?")[0].endswith(ending)
        return actions[count] if hit and count < len(actions) else None

    return rule


def write(tainter: Tainter, name: str, wanted: list[Object]) -> None:
    """What another writer makes of a node's taints."""
    change = [{"op": "add", "path": "/spec/taints", "value": wanted}]
    tainter.admin.send("PATCH", f"{NODES}/{name}", change, JSON_PATCH)


def held(tainter: Tainter, holder: str, seconds: int) -> None:
    """Somebody has the Lease since so many seconds."""
    moment = moments.rfc3339(datetime.now(UTC) - timedelta(seconds=seconds), "microseconds")
    tainter.admin.merge(LEASE, {"spec": {"holderIdentity": holder, "renewTime": moment, "leaseDurationSeconds": 30}})
