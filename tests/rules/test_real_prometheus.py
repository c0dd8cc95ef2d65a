"""The rendered rules in a real Prometheus that scrapes a synthetic exporter, against the computation in Python.

All groups of the catalogue are evaluated, and none of their rules may fail.
"""

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
import yaml

from renderer import catalog
from renderer.softtaint.taints import APPROPRIATE, EFFECT, TAINTS, VALUE
from tests.repository import cluster, loaded, policy, render
from tests.rules.fleet import Convention, Node, Series, expected, series
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

TAINTED = {"busy.example.com": TAINTS, "kubelet-only": (APPROPRIATE,)}

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
            for one in (*series(self.nodes, self.convention), *others())
        ]
        return "".join(f"{labels} {value:.9f} {int(now * 1000)}\n" for labels, value in found)

    @text.setter
    def text(self, text: str) -> None:
        """The series alone decide."""


def others() -> Iterator[Series]:
    """Taints, evictions and clients: a call waits 0.2 s on average, the controller makes 40 a second."""
    for node, keys in TAINTED.items():
        for key in keys:
            rest = f'value="{VALUE}",effect="{EFFECT}"'
            yield Series(f'kube_node_spec_taint{{node="{node}",key="{key}",{rest}}}', value=1)
    pod = 'pod="virt-controller-5c7d-abcde"'
    yield Series(f"kubevirt_rest_client_rate_limiter_duration_seconds_sum{{{pod}}}", rate=8)
    yield Series(f"kubevirt_rest_client_rate_limiter_duration_seconds_count{{{pod}}}", rate=40)
    yield Series(f"kubevirt_rest_client_requests_total{{{pod}}}", rate=40)
    yield Series('descheduler_pods_evicted_total{result="success",node="a"}', rate=0.5)
    yield Series("kubevirt_vmi_migrations_in_running_phase", value=3)


def expected_elsewhere() -> dict[str, dict[str, float]]:
    """What the other groups should record, by the only label of each sample."""
    counts = {node.name: float(len(TAINTED.get(node.name, ()))) for node in FLEET}
    return {
        "kubevirt_policy:node_load_taints:count": counts,
        "kubevirt_policy:node_overutilized_taint:bool": {node: float(count == 2) for node, count in counts.items()},
        "kubevirt_policy:nodes_tainted:ratio": {"{}": 1 / len(FLEET)},
        "kubevirt_policy:migrations_in_flight:count": {"running": 3},
        "kubevirt_policy:client_throttling:seconds": {"virt-controller": 0.2},
        "kubevirt_policy:client_throttling_worst_pod:seconds": {"virt-controller": 0.2},
        "kubevirt_policy:client_requests:rate": {"virt-controller": 40},
    }


def rule_file(convention: Convention) -> str:
    """The rule files of the rendered ConfigMaps, with windows in which the test does not grow old."""
    monitoring = {"rules": "file", "nodeNames": convention, "scrapeInterval": "1s"}
    here = cluster(platform="kubernetes", versions={"kubevirt": "1.5"}, monitoring=monitoring)
    outcome = render([here, policy("RecordingRules", catalog=["rebalancing"])])
    groups = []
    for name in (f"kubevirt-policy-{group}.yaml" for group in catalog.CATALOG):
        groups += yaml.safe_load(loaded(outcome, f"recording-rules/{name}")["data"][name])["groups"]
    text: str = yaml.safe_dump({"groups": [{**group, "interval": "1s"} for group in groups]})
    assert "[1m]" in text
    assert "[5m]" in text
    return text.replace("[1m]", f"[{WINDOW}s]").replace("[5m]", f"[{WINDOW}s]")


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


def asked(port: int, what: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{what}", timeout=30) as answer:
        return json.load(answer)["data"]


def recorded(port: int) -> dict[str, list[tuple[str, float]]]:
    """Every sample of the records that we promise, with its node; other labels than that are shown as they are."""
    query = urllib.parse.urlencode({"query": '{__name__=~"kubevirt_policy:.+"}'})
    found: list[dict[str, Any]] = asked(port, f"query?{query}")["result"]
    out: dict[str, list[tuple[str, float]]] = {}
    for one in found:
        name = one["metric"].pop("__name__")
        labels = one["metric"]
        only = next(iter(labels.values())) if len(labels) == 1 else str(labels)
        out.setdefault(name, []).append((only, float(one["value"][1])))
    return out


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_recorded_samples(convention: Convention, program: Programs, tmp_path: Path) -> None:
    """Each record has each node once, with the value that the computation gives."""
    wanted: dict[str, Any] = {
        name: [(node, pytest.approx(value, abs=1e-3)) for node, value in sorted(values.items())]
        for name, values in (expected(FLEET) | expected_elsewhere()).items()
    }
    with evaluating(program("prometheus"), tmp_path, convention) as port:
        ends = time.monotonic() + PATIENCE
        found: dict[str, list[tuple[str, float]]] = {}
        while found != wanted and time.monotonic() < ends:
            time.sleep(1)
            found = {name: sorted(samples) for name, samples in recorded(port).items() if name in wanted}
        rules = [rule for group in asked(port, "rules")["groups"] for rule in group["rules"]]
    assert found == wanted
    assert len(rules) > len(wanted)
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []
