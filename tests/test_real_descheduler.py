"""The rendered policy in the real descheduler, against a real API server and a real Prometheus.

It runs as the service account that is rendered with it, with the rendered arguments, and evicts in dry-run only.
"""

from __future__ import annotations

import os
import re
import ssl
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from renderer import catalog, promql
from renderer.catalog.rebalancing import EVICTIONS
from renderer.kinds.upstream_policy import RECORDS
from renderer.pipeline import Outcome
from renderer.releases.descheduler_operator import DEVIATION, STATIC
from renderer.softtaint.classify import Node, SampleError, Thresholds, Usage, ambiguous, classify, measure
from tests import repository
from tests.testbed.access import Access
from tests.testbed.fixtures import SERVERS
from tests.testbed.monitoring import Monitoring
from tests.testbed.processes import Process, free_port, until

pytestmark = SERVERS

TOKENS, MACHINES, PROTECTED = "descheduler-token", "machines", "databases"
SCHEDULABLE = {"kubevirt.io/schedulable": "true"}
PODS = 3
PER_NODE, TOTAL = 2, 5
CATEGORIES = {"underutilized": Usage.UNDER, "overutilized": Usage.OVER}


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster: the sample of each of its nodes, which of them are cordoned, and the thresholds of the policy.

    `outside` are the samples of nodes that cannot run virtual machines.
    """

    name: str
    thresholds: dict[str, str]
    samples: tuple[float, ...]
    cordoned: tuple[int, ...] = ()
    outside: tuple[float, ...] = ()

    @property
    def points(self) -> Thresholds:
        [(form, level)] = self.thresholds.items()
        low, high = (DEVIATION if form == "deviation" else STATIC)[level]
        return Thresholds(low, high, deviation=form == "deviation")

    def node(self, index: int) -> str:
        return f"{self.name}-{index}"

    @property
    def names(self) -> list[str]:
        return [self.node(index) for index in range(len(self.samples))]

    @property
    def series(self) -> dict[str, float]:
        """Samples by node, those of `outside` last."""
        return {self.node(index): value for index, value in enumerate((*self.samples, *self.outside))}

    @property
    def nodes(self) -> list[Node]:
        percents = measure(self.names, self.series)
        return [
            Node(name, percents[name], unschedulable=index in self.cordoned) for index, name in enumerate(self.names)
        ]

    @property
    def query(self) -> str:
        return f'load{{case="{self.name}"}}'


def static(level: str) -> dict[str, str]:
    return {"static": level}


def deviation(level: str) -> dict[str, str]:
    return {"deviation": level}


CASES = [
    Case("bounds-of-static-medium", static("Medium"), (0.20, 0.21, 0.50, 0.51)),
    Case("bounds-of-static-low", static("Low"), (0.10, 0.11, 0.30, 0.31)),
    Case("bounds-of-static-high", static("High"), (0.40, 0.41, 0.70, 0.71)),
    Case("just-below-the-bounds", static("Medium"), (0.209999, 0.509999, 0.519999)),
    Case("ends-of-the-scale", static("Medium"), (0.0, 1.0)),
    Case("ends-of-the-scale-by-deviation", deviation("High"), (0.0, 1.0)),
    Case("inexact-products", static("Medium"), (0.29, 0.58, 0.57, 0.07, 0.14, 0.28)),
    Case("one-of-each", deviation("Low"), (0.10, 0.50, 0.90)),
    Case("all-alike-and-idle", deviation("Low"), (0.10, 0.10, 0.10)),
    Case("all-alike-and-busy", deviation("Low"), (0.90, 0.90, 0.90)),
    Case("all-alike-without-a-lower-band", deviation("AsymmetricMedium"), (0.10, 0.10, 0.10)),
    Case("on-the-upper-bound", deviation("AsymmetricLow"), (0.30, 0.40, 0.40, 0.50)),
    Case("above-the-upper-bound", deviation("AsymmetricLow"), (0.30, 0.40, 0.40, 0.51)),
    Case("lower-bound-held-at-zero", deviation("Medium"), (0.05, 0.05, 0.35)),
    Case("upper-bound-held-at-all", deviation("Low"), (0.85, 0.95, 0.99)),
    Case("nobody-under", static("Medium"), (0.30, 0.45, 0.80)),
    Case("all-over", static("Medium"), (0.60, 0.70, 0.80)),
    Case("cordoned-and-idle", static("Medium"), (0.10, 0.30, 0.80), cordoned=(0,)),
    Case("cordoned-and-busy", static("Medium"), (0.10, 0.30, 0.80), cordoned=(2,)),
    Case("none-cordoned", static("Medium"), (0.10, 0.30, 0.80)),
    Case("all-cordoned", static("Medium"), (0.10, 0.80), cordoned=(0, 1)),
    Case("wide-upper-band", deviation("AsymmetricHigh"), (0.10, 0.20, 0.60, 0.95)),
    Case("more-than-a-cycle-may-evict", static("Medium"), (0.10, 0.55, 0.65, 0.75, 0.85)),
    Case("average-that-is-no-integer", deviation("AsymmetricLow"), (0.11, 0.12, 0.12, 0.33, 0.34, 0.35, 0.36)),
    Case("others-do-not-count", deviation("AsymmetricLow"), (0.20, 0.30, 0.45), outside=(0.0, 0.99)),
    Case("decided-by-rounding", deviation("AsymmetricLow"), (0.10, 0.56, 0.18, 0.28)),
]
NAN = Case("no-number", static("Medium"), (0.10, float("nan"), 0.80))
BROKEN = {
    "unable to find metric entry for missing-1": Case("missing", static("Medium"), (0.10, 0.30, 0.80)),
    "has value 1.01 outside of <0; 1> interval": Case("too-much", static("Medium"), (0.10, 1.01, 0.80)),
    "has value -0.01 outside of <0; 1> interval": Case("too-little", static("Medium"), (0.10, -0.01, 0.80)),
    "has value 2 outside of <0; 1> interval": Case("wrong-elsewhere", static("Medium"), (0.10, 0.80), outside=(2.0,)),
}
DEFAULT = Case("default", deviation("AsymmetricLow"), (0.10, 0.20, 0.90))


@dataclass
class Bed:
    """Where the descheduler runs."""

    program: Path
    admin: Access
    account: Access
    monitoring: Monitoring
    folder: Path
    runs: int = field(default=0)

    def cycle(self, outcome: Outcome) -> str:
        """What it logs in a cycle, once it has read everything."""
        with self.running(outcome, secure_port=0) as log:
            found = settled(log.read_text())
        assert found is not None
        return found

    @contextmanager
    def running(self, outcome: Outcome, secure_port: int) -> Iterator[Path]:
        """Its log, from the first settled cycle on.  At port 0 it serves nothing."""
        self.runs += 1
        policy, log = self.folder / f"policy-{self.runs}.yaml", self.folder / f"descheduler-{self.runs}.log"
        policy.write_text(repository.loaded(outcome, "descheduler/configmap.yaml")["data"]["policy.yaml"])
        deployment = repository.loaded(outcome, "descheduler/deployment.yaml")
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        # The last of several values counts.
        serves = [f"--secure-port={secure_port}", "--bind-address=127.0.0.1"]
        here = [f"--policy-config-file={policy}", f"--kubeconfig={self.account.kubeconfig}", *serves]
        authority = {"POD_CA_FILE": str(self.account.authority)}
        command = [self.program, *container["args"], *here, "--descheduling-interval=300ms", "--v=4"]
        process = Process(command, self.folder, log, environment={**os.environ, **authority})
        try:
            until(lambda: settled(log.read_text()) is not None, "a cycle of the descheduler", process=process)
            yield log
        finally:
            process.stop()


def settled(log: str) -> str | None:
    """The first whole cycle that comes to the same as the one before.

    The first cycles may start before the token and all nodes and pods were read, and then do less.
    """
    parts = log.split("Resetting pod evictor counters")[1:]
    whole = [part for part in parts if '"Number of evictions/requests"' in part]
    useful = [part for part in whole if "client not initialized" not in part and "requires >=2 nodes" not in part]
    for before, after in pairwise(useful):
        if (classes(before), evictions(before)) == (classes(after), evictions(after)):
            return after
    return None


def rendered(monitoring: Monitoring, **spec: Any) -> Outcome:
    settings: dict[str, Any] = {
        "versions": {"kubevirt": "1.7", "descheduler": "0.36"},
        "monitoring": {"url": monitoring.url, "tokenSecret": {"namespace": TOKENS, "name": "prometheus"}},
    }
    wanted = {"mode": "Predictive", "namespaces": {"excluded": [PROTECTED]}, **spec}
    documents = [
        repository.cluster(platform="kubernetes", **settings),
        repository.policy("RebalancePolicy", **wanted),
    ]
    outcome = repository.render(documents)
    assert not outcome.failed, outcome.findings
    return outcome


def for_case(monitoring: Monitoring, case: Case) -> Outcome:
    return rendered(monitoring, thresholds=case.thresholds, utilization={"query": case.query})


@pytest.fixture(scope="module")
def bed(
    apiserver: Access, prometheus: Monitoring, descheduler: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bed]:
    """All that is rendered is applied, the token is there, and so are the series of all cases."""
    folder = tmp_path_factory.mktemp("descheduler")
    surround(apiserver)
    files = rendered(prometheus).files
    objects = [
        yaml.safe_load(text)
        for path, text in files.items()
        if "/descheduler/" in path and not path.endswith("/kustomization.yaml")
    ]
    applied = apiserver.apply(yaml.safe_dump_all(objects), "argocd-controller")
    assert applied.ok, applied.output
    token = apiserver.create_at(
        "/api/v1/namespaces/kube-system/serviceaccounts/descheduler-sa/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )["status"]["token"]
    account = Access.create(apiserver.port, apiserver.authority, token, folder / "descheduler.kubeconfig")
    prometheus.expose(series())
    yield Bed(descheduler, apiserver, account, prometheus, folder)
    for body in objects:
        apiserver.delete(apiserver.path(body))


def surround(access: Access) -> None:
    """The namespaces and the token that it needs.  They stay: nothing here would finish the deletion of a namespace."""
    for name in (TOKENS, MACHINES, PROTECTED):
        access.ensure_namespace(name)
    secrets = f"/api/v1/namespaces/{TOKENS}/secrets"
    if not access.exists(f"{secrets}/prometheus"):
        secret = {"metadata": {"name": "prometheus"}, "stringData": {"prometheusAuthToken": "any"}}
        access.create_at(secrets, secret)


def series() -> dict[str, str]:
    """One for each node of each case; the missing one is left out."""
    found = {
        f'load{{case="{case.name}",instance="{node}"}}': str(value)
        for case in (*CASES, NAN, *BROKEN.values())
        for node, value in case.series.items()
        if node != "missing-1"
    }
    record = RECORDS["CPUMemoryCombined"]
    return found | {f'{record}{{instance="{node}"}}': str(value) for node, value in DEFAULT.series.items()}


@contextmanager
def cluster(access: Access, case: Case) -> Iterator[None]:
    """The nodes of a case, with the pods of virtual machines on them."""
    for index, name in enumerate(case.series):
        add_node(access, name, SCHEDULABLE if name in case.names else {}, cordoned=index in case.cordoned)
        for number in range(PODS):
            add_pod(access, MACHINES, f"virt-launcher-{name}-{number}", name)
        add_pod(access, PROTECTED, f"virt-launcher-{name}-{PODS}", name)
    yield
    for name in case.series:
        access.delete(f"/api/v1/nodes/{name}")
    for namespace in (MACHINES, PROTECTED):
        access.delete(f"/api/v1/namespaces/{namespace}/pods")


def add_node(access: Access, name: str, labels: dict[str, str], *, cordoned: bool) -> None:
    access.create_at("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    # Every new node is tainted as not ready until somebody finds it ready.
    access.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None, "unschedulable": cordoned or None}})
    size = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    status = {"conditions": [{"type": "Ready", "status": "True"}], "capacity": size, "allocatable": size}
    access.merge(f"/api/v1/nodes/{name}/status", {"status": status})


def add_pod(access: Access, namespace: str, name: str, node: str) -> None:
    owner = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "name": name,
        "uid": str(uuid.uuid4()),
        "controller": True,
    }
    metadata = {
        "name": name,
        "labels": {"kubevirt.io": "virt-launcher"},
        "annotations": {"descheduler.alpha.kubernetes.io/request-evict-only": ""},
        "ownerReferences": [owner],
    }
    spec = {
        "nodeName": node,
        "containers": [{"name": "compute", "image": "virt-launcher"}],
        "volumes": [{"name": "private", "emptyDir": {}}],
    }
    access.create_at(f"/api/v1/namespaces/{namespace}/pods", {"metadata": metadata, "spec": spec})


def classes(cycle: str) -> dict[str, Usage]:
    """The class of each node, as the descheduler logs it."""
    found: dict[str, Usage] = {}
    for line in cycle.splitlines():
        node = re.search(r' node="([^"]+)"', line)
        if node is not None and '"Node has been classified"' in line:
            category = re.search(r' category="(\w+)"', line)
            assert category is not None, line
            found[node[1]] = CATEGORIES[category[1]]
        elif node is not None and '"Node is appropriately utilized"' in line:
            found[node[1]] = Usage.APPROPRIATE
    return found


def evictions(cycle: str) -> Counter[str]:
    """How many pods would have been evicted from each node."""
    lines = [line for line in cycle.splitlines() if '"Evicted pod in dry run mode"' in line]
    assert all(f'pod="{MACHINES}/' in line for line in lines)
    return Counter(re.findall(r' node="([^"]+)"', "\n".join(lines)))


def expected(nodes: list[Node], usages: dict[str, Usage]) -> list[tuple[int, int]]:
    """Load and evictions of each node that pods leave: the most loaded ones first, up to both limits."""
    if Usage.UNDER not in usages.values():
        return []
    over = sorted((node.percent for node in nodes if usages[node.name] is Usage.OVER), reverse=True)
    counts = [max(min(PER_NODE, TOTAL - PER_NODE * index), 0) for index in range(len(over))]
    return [(percent, count) for percent, count in zip(over, counts, strict=True) if count]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nodes_are_classified_and_relieved_as_we_say(bed: Bed, case: Case) -> None:
    with cluster(bed.admin, case):
        cycle = bed.cycle(for_case(bed.monitoring, case))
    found, wanted = classes(cycle), classify(case.nodes, case.points)
    for name in ambiguous(case.nodes, case.points):  # the descheduler adds up in random order
        wanted[name] = found[name]
    assert found == wanted, cycle
    percents = {node.name: node.percent for node in case.nodes}
    left = sorted(((percents[name], count) for name, count in evictions(cycle).items()), reverse=True)
    assert left == expected(case.nodes, wanted), cycle


@pytest.mark.parametrize(("message", "case"), BROKEN.items(), ids=[case.name for case in BROKEN.values()])
def test_a_sample_that_cannot_be_used_stops_both(bed: Bed, message: str, case: Case) -> None:
    samples = {name: value for name, value in case.series.items() if name != "missing-1"}
    with pytest.raises(SampleError):
        measure(case.names, samples)
    with cluster(bed.admin, case):
        cycle = bed.cycle(for_case(bed.monitoring, case))
    assert message in cycle
    assert classes(cycle) == {}
    assert not evictions(cycle)


def test_what_is_no_number_is_refused_by_us_and_means_idle_to_the_descheduler(bed: Bed) -> None:
    with pytest.raises(SampleError):
        measure(NAN.names, NAN.series)
    with cluster(bed.admin, NAN):
        cycle = bed.cycle(for_case(bed.monitoring, NAN))
    assert classes(cycle)["no-number-1"] is Usage.UNDER, cycle


def test_the_default_policy_reads_what_the_catalogue_records(bed: Bed) -> None:
    with cluster(bed.admin, DEFAULT):
        cycle = bed.cycle(rendered(bed.monitoring))
    assert classes(cycle) == classify(DEFAULT.nodes, DEFAULT.points), cycle
    assert evictions(cycle) == {"default-2": PER_NODE}, cycle


def served(port: int) -> str:
    """Its metrics; it makes its certificate by itself."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=context, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def test_the_catalogue_knows_the_names_of_its_metrics(bed: Bed) -> None:
    """Both names are there, and simulated evictions count as made: only KubeVirt tells whether anything moved."""
    group = catalog.groups(["rebalancing"], catalog.Source())["rebalancing"]
    [evictions] = [rule.expr for rule in group.rules if rule.record == EVICTIONS]
    port = free_port()
    with cluster(bed.admin, DEFAULT), bed.running(rendered(bed.monitoring), secure_port=port):
        text = served(port)
    for name in promql.parse(evictions).metrics:
        [made] = re.findall(rf'^{name}{{.*node="default-2".*result="success".*}} (\d+)$', text, re.MULTILINE)
        assert int(made) >= PER_NODE


def test_the_account_may_do_no_more_than_it_needs(bed: Bed) -> None:
    """The rendered permissions are those that the runs above got by with; what they leave out is refused."""

    def allowed(verb: str, resource: str, namespace: str = "", group: str = "") -> bool:
        attributes = {"verb": verb, "resource": resource, "namespace": namespace, "group": group}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = bed.account.create_at("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    assert allowed("list", "secrets", TOKENS)
    assert not allowed("list", "secrets", "kube-system")
    assert not allowed("list", "secrets")
    assert not allowed("delete", "pods", MACHINES)
    assert not allowed("patch", "nodes")
