"""The rendered rules in a real Prometheus that scrapes a synthetic exporter, against the computation in Python."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.repository import cluster, loaded, policy, render
from tests.rules.fleet import Convention, Node, expected, series
from tests.testbed.fixtures import SERVERS, Programs
from tests.testbed.kubernetes import answers
from tests.testbed.monitoring import Exporter
from tests.testbed.processes import serving

pytestmark = SERVERS
CONVENTIONS: list[Convention] = ["name", "address"]
WINDOW = 8
PATIENCE = 90

FLEET = [
    Node("busy.example.com", 0.92, 0.85, (0.4, 0.25, 0.1), address="10.0.0.1", roles=("worker",)),
    Node("idle.example.com", 0.08, 0.3, (0.01, 0.0, 0.02), address="10.0.0.11", roles=("worker",)),
    Node("no-pressure", 0.75, 0.6, None, address="fd00::1", waiting=0.12),
    Node("kubelet-only", 0.5, 0.4, exporters=0, address="fd00::2"),
    Node("two-exporters", 0.8, 0.9, (0.3, 0.3, 0.3), address="10.0.0.2", exporters=2),
    Node("control-plane", 0.99, 0.95, (0.9, 0.9, 0.9), address="10.0.0.3", roles=("control-plane",)),
]

_CONFIG = """\
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
- job_name: nodes
  honor_labels: true
  static_configs:
  - targets: ["127.0.0.1:{port}"]
"""


class Growing(Exporter):
    """Counters as they stand at the moment, with that moment: rates are exact, however late a scrape comes."""

    nodes: Sequence[Node] = ()
    convention: Convention = "name"

    @property
    def text(self) -> str:
        now = time.time()
        found = [
            (one.labels, one.value if one.value is not None else one.rate * now)
            for one in series(self.nodes, self.convention)
        ]
        return "".join(f"{labels} {value:.9f} {int(now * 1000)}\n" for labels, value in found)

    @text.setter
    def text(self, text: str) -> None:
        """The series alone decide."""


def rule_file(convention: Convention) -> str:
    """The rule file of a rendered ConfigMap, with windows in which the test does not grow old."""
    monitoring = {"rules": "file", "nodeNames": convention, "scrapeInterval": "1s"}
    here = cluster(platform="kubernetes", versions={"kubevirt": "1.5"}, monitoring=monitoring)
    outcome = render([here, policy("RecordingRules", catalog=["load-aware"])])
    text: str = loaded(outcome, "recording-rules/kubevirt-policy-load-aware.yaml")["data"][
        "kubevirt-policy-load-aware.yaml"
    ]
    assert "[1m]" in text
    return text.replace("[1m]", f"[{WINDOW}s]")


@contextmanager
def evaluating(program: Path, folder: Path, convention: Convention) -> Iterator[int]:
    """A Prometheus that scrapes the fleet and evaluates the rules; its port."""
    exporter = Growing()
    exporter.nodes, exporter.convention = FLEET, convention
    rules, config = folder / "rules.yaml", folder / "prometheus.yml"
    rules.write_text(rule_file(convention))
    config.write_text(_CONFIG.format(rules=rules, port=exporter.port))

    def command(port: int) -> list[str | Path]:
        data = folder / f"data-{port}"
        address = f"--web.listen-address=127.0.0.1:{port}"
        return [program, f"--config.file={config}", f"--storage.tsdb.path={data}", address, "--log.level=warn"]

    try:
        with serving("prometheus", command, lambda port: answers(port, "/-/ready"), folder) as port:
            yield port
    finally:
        exporter.close()


def recorded(port: int) -> dict[str, list[tuple[str, float]]]:
    """Every sample of the records that we promise, with its node; other labels than that are shown as they are."""
    query = urllib.parse.urlencode({"query": '{__name__=~"kubevirt_policy:node_.+:ratio"}'})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{query}", timeout=30) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    out: dict[str, list[tuple[str, float]]] = {}
    for one in found:
        name = one["metric"].pop("__name__")
        node = one["metric"]["instance"] if list(one["metric"]) == ["instance"] else str(one["metric"])
        out.setdefault(name, []).append((node, float(one["value"][1])))
    return out


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_recorded_samples(convention: Convention, program: Programs, tmp_path: Path) -> None:
    """Each record has each node once, with the value that the computation gives."""
    wanted: dict[str, Any] = {
        name: [(node, pytest.approx(value, abs=1e-3)) for node, value in sorted(values.items())]
        for name, values in expected(FLEET).items()
    }
    with evaluating(program("prometheus"), tmp_path, convention) as port:
        ends = time.monotonic() + PATIENCE
        found: dict[str, list[tuple[str, float]]] = {}
        while found != wanted and time.monotonic() < ends:
            time.sleep(1)
            found = {name: sorted(samples) for name, samples in recorded(port).items() if name in wanted}
    assert found == wanted
