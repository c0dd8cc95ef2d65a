"""What the taints of a pass do: to the real kube-scheduler, which is to follow them, and to the real descheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from renderer.softtaint.classify import Usage
from renderer.softtaint.taints import APPROPRIATE, OVERUTILIZED
from tests import softtaint
from tests import test_real_descheduler as descheduling
from tests.softtaint import GOOD, Tainter, level
from tests.test_real_descheduler import Bed, Case, static
from tests.testbed.access import Access
from tests.testbed.fixtures import SERVERS
from tests.testbed.monitoring import Monitoring
from tests.testbed.nodes import NODES, Object, fleet, listed, small
from tests.testbed.processes import Process, until

pytestmark = SERVERS

NAMESPACE = "scheduled"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
WEIGHT = 3
"""Of the scheduler's TaintToleration, whose scores are 0…100."""
OURS = [{"key": key, "value": "true", "effect": "PreferNoSchedule"} for key in (OVERUTILIZED, APPROPRIATE)]

# The load of each node; the taints that a pass then writes; the scores that follow from them (facts D.3).
Row = tuple[tuple[float, ...], tuple[int, ...], tuple[int, ...]]
ROWS: dict[str, Row] = {
    "one-of-each": ((0.10, 0.35, 0.80), (0, 1, 2), (300, 150, 0)),
    "without-over": ((0.10, 0.15, 0.35), (0, 0, 1), (300, 300, 0)),
    "beyond-the-share": ((0.10, 0.70, 0.80), (0, 1, 2), (300, 150, 0)),
    "without-under": ((0.35, 0.40, 0.80), (0, 0, 2), (300, 300, 0)),
    "all-fair": ((0.30, 0.35, 0.40), (0, 0, 0), (300, 300, 300)),
    "all-over": ((0.60, 0.70, 0.80), (0, 0, 2), (300, 300, 0)),
    "all-under": ((0.10, 0.10, 0.10), (0, 0, 0), (300, 300, 300)),
}
TOWARDS = ("one-of-each", "without-over", "beyond-the-share", "without-under", "all-over")
DESCHEDULED = Case("under-our-taints", static("Medium"), (0.10, 0.35, 0.80))


def names(row: str) -> list[str]:
    return [f"{row}-{number}" for number in range(3)]


def query(row: str) -> str:
    return f'load{{case="{row}"}}'


@dataclass(frozen=True, slots=True)
class Scheduling:
    """A scheduler, and a soft-tainter whose Prometheus knows the loads of all rows."""

    tainter: Tainter
    monitoring: Monitoring
    log: Path

    def spread(self, row: str) -> dict[str, int]:
        """Run a pass; how many taints each node then has."""
        ended = self.tainter.run(self.tainter.config(self.monitoring.url, query(row)))
        assert ended.code == GOOD, ended.text
        return {name: level(node) for name, node in listed(self.tainter.admin).items()}

    def scores(self, pod: str) -> dict[str, int]:
        """What the scheduler's TaintToleration gave each node for that pod, by its weight."""
        lines = [line for line in self.log.read_text().splitlines() if f'pod="{NAMESPACE}/{pod}"' in line]
        scored = [line for line in lines if 'plugin="TaintToleration"' in line and " score=" in line]
        pattern = re.compile(r' node="([^"]+)".* score=(\d+)')
        return {found[1]: int(found[2]) for line in scored if (found := pattern.search(line))}

    def placed(self, pod: str) -> str:
        """Create a pod without tolerations; where the scheduler puts it."""
        container = {"name": "compute", "image": "virt-launcher", "resources": {"requests": {"cpu": "100m"}}}
        self.tainter.admin.create_at(PODS, {"metadata": {"name": pod}, "spec": {"containers": [container]}})
        until(lambda: "nodeName" in self.tainter.admin.get(f"{PODS}/{pod}")["spec"], f"a place for {pod}")
        found: str = self.tainter.admin.get(f"{PODS}/{pod}")["spec"]["nodeName"]
        return found

    def settled(self, pod: str, wanted: dict[str, int]) -> None:
        """Once the scheduler has seen the taints: it hears of nodes and of pods on two ways."""
        attempts = iter(range(100))

        def seen() -> bool:
            name = f"{pod}-{next(attempts)}"
            self.placed(name)
            until(lambda: len(self.scores(name)) == len(wanted), "its log")
            return self.scores(name) == wanted

        until(seen, f"scores of {wanted}")


@pytest.fixture(scope="module")
def tainter(apiserver: Access, prometheus: Monitoring, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tainter]:
    series = {f'load{{case="{row}",instance="{name}"}}': load for row in ROWS for name, load in loads(row).items()}
    series |= {f'load{{case="{DESCHEDULED.name}",instance="{n}"}}': load for n, load in DESCHEDULED.series.items()}
    with softtaint.installed(apiserver, tmp_path_factory.mktemp("scheduling")) as found:
        prometheus.expose({name: str(load) for name, load in series.items()})
        yield found


def loads(row: str) -> dict[str, float]:
    return dict(zip(names(row), ROWS[row][0], strict=True))


@pytest.fixture(scope="module")
def scheduling(
    tainter: Tainter, prometheus: Monitoring, scheduler: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scheduling]:
    folder = tmp_path_factory.mktemp("scheduler")
    tainter.admin.ensure_namespace(NAMESPACE)
    arguments = ["--leader-elect=false", "--secure-port=0", "--v=10", f"--kubeconfig={tainter.admin.kubeconfig}"]
    process = Process([scheduler, *arguments], folder, folder / "log")
    try:
        yield Scheduling(tainter, prometheus, process.log)
    finally:
        process.stop()


@contextmanager
def nodes(scheduling: Scheduling, row: str, taints: Sequence[Object] = ()) -> Iterator[list[str]]:
    with fleet(scheduling.tainter.admin, [small(name, taints=taints) for name in names(row)], "scheduling") as found:
        yield found
        scheduling.tainter.admin.delete(PODS)


@pytest.mark.parametrize("row", ROWS)
def test_pods_go_where_the_taints_of_a_pass_point(scheduling: Scheduling, row: str) -> None:
    _, counts, scores = ROWS[row]
    with nodes(scheduling, row) as found:
        assert scheduling.spread(row) == dict(zip(found, counts, strict=True))
        scheduling.settled(row, dict(zip(found, scores, strict=True)))
        if row in TOWARDS:
            places = {scheduling.placed(f"{row}-more-{number}") for number in range(4)}
            assert places <= {name for name, score in zip(found, scores, strict=True) if score == 300}


@pytest.mark.parametrize("count", [0, 1, 2])
def test_taints_that_are_alike_change_nothing(scheduling: Scheduling, count: int) -> None:
    """The reason for the cap: with one or two on every node, the other plugins decide as they do without any."""
    row = "all-fair"
    with nodes(scheduling, row, OURS[:count]) as found:
        scheduling.settled(f"alike-{count}", dict.fromkeys(found, 0 if count else 100 * WEIGHT))
        for name in found[:2]:
            occupy(scheduling.tainter.admin, name)
        assert until_placed(scheduling, f"alike-{count}-then", found[2])


def occupy(access: Access, node: str) -> None:
    """Fill half of a node."""
    container = {"name": "compute", "image": "a", "resources": {"requests": {"cpu": "32", "memory": "128Gi"}}}
    spec = {"nodeName": node, "containers": [container]}
    access.create_at(PODS, {"metadata": {"name": f"half-of-{node}"}, "spec": spec})


def until_placed(scheduling: Scheduling, pod: str, node: str) -> bool:
    """The scheduler hears of the pods that occupy nodes a moment later; from then on there is one place."""
    attempts = iter(range(100))
    until(lambda: scheduling.placed(f"{pod}-{next(attempts)}") == node, f"a pod on {node}")
    return all(scheduling.placed(f"{pod}-again-{number}") == node for number in range(3))


@pytest.fixture(scope="module")
def bed(
    tainter: Tainter, prometheus: Monitoring, descheduler: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bed]:
    """The rendered descheduler, beside the soft-tainter."""
    admin, folder = tainter.admin, tmp_path_factory.mktemp("descheduler")
    descheduling.surround(admin)
    outcome = descheduling.rendered(prometheus)
    paths = [path for path in outcome.files if "/descheduler/" in path and not path.endswith("/kustomization.yaml")]
    objects = [yaml.safe_load(outcome.files[path]) for path in paths]
    assert admin.apply(yaml.safe_dump_all(objects), "argocd-controller").ok
    token = admin.create_at(
        "/api/v1/namespaces/kube-system/serviceaccounts/descheduler-sa/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )["status"]["token"]
    account = Access.create(admin.port, admin.authority, token, folder / "descheduler.kubeconfig")
    yield Bed(descheduler, admin, account, prometheus, folder)
    for body in objects:
        admin.delete(admin.path(body))


def test_the_descheduler_finds_destinations_under_our_taints(tainter: Tainter, bed: Bed) -> None:
    """And none once every under-utilized node has a taint: it counts soft ones as well (facts 0.7)."""
    outcome = descheduling.for_case(bed.monitoring, DESCHEDULED)
    config = tainter.config(bed.monitoring.url, query(DESCHEDULED.name))
    idle, _, busy = DESCHEDULED.names
    with descheduling.cluster(bed.admin, DESCHEDULED):
        ended = tainter.run(config)
        assert ended.code == GOOD, ended.text
        assert [level(bed.admin.get(f"{NODES}/{name}")) for name in DESCHEDULED.names] == [0, 1, 2]
        cycle = bed.cycle(outcome)
        assert descheduling.classes(cycle)[idle] is Usage.UNDER
        assert descheduling.evictions(cycle) == {busy: descheduling.PER_NODE}

        bed.admin.merge(f"{NODES}/{idle}", {"spec": {"taints": OURS[1:]}})
        cycle = bed.cycle(outcome)
        assert descheduling.classes(cycle)[idle] is Usage.UNDER
        assert not descheduling.evictions(cycle)

        assert tainter.run(config).code == GOOD
        assert descheduling.evictions(bed.cycle(outcome)) == {busy: descheduling.PER_NODE}
