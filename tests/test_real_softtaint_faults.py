"""What fails around a pass, and a pass that is killed: nothing of others is touched, and the next pass repairs."""

from __future__ import annotations

import json
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest
import yaml

from renderer.softtaint.lease import LAST_GOOD
from renderer.softtaint.taints import APPROPRIATE, OVERUTILIZED, ours
from tests import softtaint
from tests.softtaint import ACCOUNT, GOOD, HELD, LEASE, NO_API, NO_SAMPLES, PARTLY, REMOVED, Ended, Tainter, level
from tests.testbed.control_plane import ControlPlane, control_plane
from tests.testbed.fixtures import SERVERS, Programs
from tests.testbed.monitoring import Monitoring
from tests.testbed.nodes import NODES, Object, fleet, listed, small, taints
from tests.testbed.processes import free_port, until
from tests.testbed.proxy import Exchange, Proxy, between

pytestmark = SERVERS

OVER, HALF = ({"key": key, "value": "true", "effect": "PreferNoSchedule"} for key in (OVERUTILIZED, APPROPRIATE))
SOFT = {"key": "example.com/soft", "value": "1", "effect": "PreferNoSchedule"}
TIMED = {"key": "example.com/timed", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
STRANGE = {**OVER, "effect": "NoSchedule"}
# Load, the taints before, and how many of ours there are to be; static thresholds of 20 and 50.
CASES: dict[str, tuple[float, list[Object], int]] = {
    "idle": (0.10, [SOFT, OVER, TIMED, HALF], 0),
    "fair": (0.35, [TIMED, STRANGE], 1),
    "busy": (0.80, [HALF, SOFT], 2),
    "calm": (0.15, [SOFT], 0),
}
CHANGED = 3
WRITES = 1 + 2 * CHANGED + 1
"""Of a pass: the Lease is taken, each node that changes and its Event are written, the Lease is given back."""
OTHERS = 10_000
SECONDS = 120


@pytest.fixture(scope="module")
def plane(program: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server that is this module's to kill; it gives up on etcd soon."""
    programs = program("etcd"), program("kube-apiserver")
    with control_plane(*programs, tmp_path_factory.mktemp("faults"), "--request-timeout=1s") as found:
        yield found


@pytest.fixture(scope="module")
def tainter(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tainter]:
    with softtaint.installed(plane.admin, tmp_path_factory.mktemp("tainter")) as found:
        yield found


@pytest.fixture(scope="module")
def config(tainter: Tainter, prometheus: Monitoring) -> Path:
    """With a Prometheus that knows the loads, and those of many nodes that are not there."""
    loads = {name: load for name, (load, _, _) in CASES.items()} | {f"other-{n}": 0.5 for n in range(OTHERS)}
    prometheus.expose({f'load{{instance="{name}"}}': str(load) for name, load in loads.items()})
    return tainter.config(prometheus.url)


@pytest.fixture
def before(tainter: Tainter) -> Iterator[dict[str, Object]]:
    """The nodes, with taints of others and with wrong ones of ours."""
    with fleet(tainter.admin, [small(name, taints=found) for name, (_, found, _) in CASES.items()], "faults"):
        yield listed(tainter.admin)


@pytest.fixture
def between_them(tainter: Tainter, tmp_path: Path) -> Iterator[tuple[Proxy, str]]:
    """A proxy between the job and the API server, and the argument that makes the job use it."""
    with between(tainter.admin, tmp_path, token=tainter.account.token) as (proxy, kubeconfig):
        yield proxy, f"--kubeconfig={kubeconfig}"


def foreign(node: Object) -> Object:
    """All of a node that is not the job's to write; versions and managers of fields are the server's."""
    metadata = {
        name: value for name, value in node["metadata"].items() if name not in {"resourceVersion", "managedFields"}
    }
    others = [taint for taint in taints(node) if not ours(taint)]
    return {**node, "metadata": metadata, "spec": {**node["spec"], "taints": others}}


def untouched(tainter: Tainter, before: dict[str, Object]) -> dict[str, Object]:
    """The nodes now, of which nobody else's part has changed."""
    after = listed(tainter.admin)
    assert {name: foreign(node) for name, node in after.items()} == {
        name: foreign(node) for name, node in before.items()
    }
    return after


def repaired(tainter: Tainter, config: Path, before: dict[str, Object]) -> None:
    """Nothing of others was touched, and the next pass makes all of ours right."""
    untouched(tainter, before)
    expire(tainter)
    ended = tainter.run(config)
    assert ended.code == GOOD, ended.text
    after = untouched(tainter, before)
    assert {name: level(node) for name, node in after.items()} == {name: count for name, (_, _, count) in CASES.items()}


def unchanged(tainter: Tainter, before: dict[str, Object]) -> None:
    assert listed(tainter.admin) == before


def expire(tainter: Tainter) -> None:
    """Time goes by: who held the Lease and did not give it back is taken for dead."""
    if tainter.admin.exists(LEASE):
        tainter.admin.merge(LEASE, {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})


def nth_write(number: int, happening: Callable[[Exchange], None], *, path: str = "") -> Callable[[Exchange, int], Any]:
    """A rule: something else becomes of that write, counted from 1, of those to paths that begin so."""
    lock, seen = Lock(), [0]

    def rule(exchange: Exchange, _: int) -> Callable[[Exchange], None] | None:
        with lock:
            seen[0] += exchange.method != "GET" and exchange.path.startswith(path)
            mine = seen[0] == number and exchange.method != "GET" and exchange.path.startswith(path)
        return happening if mine else None

    return rule


# The job itself


def test_a_whole_pass(
    tainter: Tainter, config: Path, before: dict[str, Object], between_them: tuple[Proxy, str]
) -> None:
    """What the tests below interrupt.  Series of nodes that are not there are counted, not feared."""
    proxy, there = between_them
    ended = tainter.run(config, there)
    assert ended.code == GOOD, ended.text
    assert sum(count for name, count in proxy.seen.items() if not name.startswith("GET")) == WRITES
    assert ended.summary["rejected_samples"] == {"unknown_node": OTHERS}
    assert len(ended.lines) < 200
    repaired(tainter, config, before)


@pytest.mark.parametrize("number", range(1, WRITES + 1))
def test_killed_at_every_write(
    tainter: Tainter, config: Path, before: dict[str, Object], between_them: tuple[Proxy, str], number: int
) -> None:
    """The server has done it, and the job does not live to hear of it."""
    proxy, there = between_them
    started, processes = Event(), list[subprocess.Popen[str]]()

    def kill(exchange: Exchange) -> None:
        started.wait(SECONDS)
        exchange.ask()
        processes[0].kill()
        exchange.cut()

    proxy.rule = nth_write(number, kill)
    processes.append(tainter.start(config, there))
    started.set()
    assert softtaint.ended(processes[0]).code == -9
    repaired(tainter, config, before)


def test_whoever_was_killed_holds_up_the_next_only_for_a_while(
    tainter: Tainter, config: Path, before: dict[str, Object]
) -> None:
    assert tainter.run(config).code == GOOD
    lease = tainter.admin.get(LEASE)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    held = {"holderIdentity": "somebody", "leaseDurationSeconds": 30, "renewTime": moment}
    tainter.admin.merge(LEASE, {"spec": held})
    now = listed(tainter.admin)
    assert tainter.run(config).code == HELD
    unchanged(tainter, now)
    assert tainter.admin.get(LEASE)["spec"]["leaseTransitions"] == lease["spec"]["leaseTransitions"]
    repaired(tainter, config, before)


# The API server and etcd


def test_an_api_server_that_dies_and_stays_away(
    plane: ControlPlane, tainter: Tainter, config: Path, before: dict[str, Object], between_them: tuple[Proxy, str]
) -> None:
    proxy, there = between_them

    def die(exchange: Exchange) -> None:
        plane.kill("kube-apiserver")
        exchange.cut()

    proxy.rule = nth_write(2, die, path=NODES)
    try:
        assert tainter.run(config, there).code == PARTLY
    finally:
        plane.start()
    repaired(tainter, config, before)


def test_an_api_server_that_dies_and_comes_back(
    plane: ControlPlane, tainter: Tainter, config: Path, before: dict[str, Object], between_them: tuple[Proxy, str]
) -> None:
    """The pass goes on where it was; on a slow machine it may have given some nodes up."""
    proxy, there = between_them
    struck = Event()

    def die(exchange: Exchange) -> None:
        exchange.ask()
        plane.kill("kube-apiserver")
        struck.set()
        exchange.cut()

    proxy.rule = nth_write(2, die, path=NODES)
    ended = mended(plane, tainter.start(config, there), struck)
    assert ended.code in {GOOD, PARTLY}, ended.text
    repaired(tainter, config, before)


def test_a_store_that_dies_and_comes_back(
    plane: ControlPlane, tainter: Tainter, config: Path, before: dict[str, Object], between_them: tuple[Proxy, str]
) -> None:
    """Not before the API server has told the job that it cannot go on."""
    proxy, there = between_them
    lock, killed, struck = Lock(), Event(), Event()

    def watched(exchange: Exchange) -> None:
        with lock:
            if not killed.is_set():
                plane.kill("etcd")
                killed.set()
        status, headers, body = exchange.ask()
        if status >= 500:
            struck.set()
        exchange.answer(status, headers, body)

    proxy.rule = lambda exchange, _: watched if exchange.method == "PATCH" else None
    ended = mended(plane, tainter.start(config, there), struck)
    assert ended.code in {GOOD, PARTLY}, ended.text
    assert any(name.startswith("PATCH 5") for name in ended.summary["requests"])
    repaired(tainter, config, before)


def mended(plane: ControlPlane, process: subprocess.Popen[str], struck: Event) -> Ended:
    """The end of a pass in which what has died comes back."""
    try:
        assert struck.wait(SECONDS)
    finally:
        plane.start()
    return softtaint.ended(process)


def test_a_store_that_hangs(plane: ControlPlane, tainter: Tainter, config: Path, before: dict[str, Object]) -> None:
    with plane.held("etcd"):
        assert tainter.run(config).code == NO_API
    until(lambda: bool(listed(plane.admin)), "the API server")
    unchanged(tainter, before)
    repaired(tainter, config, before)


def test_a_revoked_token(tainter: Tainter, config: Path, before: dict[str, Object]) -> None:
    tainter.admin.delete(ACCOUNT)
    try:
        # The server remembers for ten seconds whom it knows.
        until(lambda: softtaint.refusal(tainter.account, "GET", LEASE).startswith("401"), "the end of the token")
        ended = tainter.run(config)
    finally:
        applied = tainter.admin.apply(yaml.safe_dump_all(tainter.objects), "argocd-controller")
        tainter.account = softtaint.admitted(tainter.admin, tainter.folder)
    assert applied.ok, applied.output
    assert ended.code == NO_API, ended.text
    unchanged(tainter, before)
    repaired(tainter, config, before)


# Prometheus


class Impostor:
    """A web server in the place of Prometheus that answers every request alike."""

    def __init__(self, reply: Callable[[BaseHTTPRequestHandler], None], certificate: Path | None = None) -> None:
        self.asked = Event()
        impostor = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                impostor.asked.set()
                reply(self)

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:
                    """The other side has gone, or speaks something else."""

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, certificate.with_suffix(".key"))
            socket = self._server.socket
            self._server.socket = context.wrap_socket(socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"http{'' if certificate is None else 's'}://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def impostor(reply: Callable[[BaseHTTPRequestHandler], None], certificate: Path | None = None) -> Iterator[Impostor]:
    found = Impostor(reply, certificate)
    try:
        yield found
    finally:
        found.close()


def says(body: bytes, status: int = 200, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def vector(**loads: str) -> bytes:
    """An answer of Prometheus to the job's query, as of one moment."""
    result = [
        {"metric": {"instance": name, "kubevirt_policy_part": part}, "value": [1.0, value]}
        for name, load in loads.items()
        for part, value in (("value", load), ("timestamp", "1"))
    ]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()


RIGHT = vector(**{name: str(load) for name, (load, _, _) in CASES.items()})
RUBBISH = {
    "nothing": says(b""),
    "a-page": says(b"<html>Sign in</html>", Content_Type="text/html"),
    "half-an-answer": says(RIGHT[: len(RIGHT) // 2]),
    "less-than-announced": says(RIGHT[:100], Content_Length=str(len(RIGHT))),
    "another-json": says(b'{"status": "success"}'),
    "no-series": says(vector()),
    "a-scalar": says(b'{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}'),
    "an-error": says(b'{"status":"error","errorType":"bad_data","error":"no"}', 400),
    "not-now": says(b"", 503),
    "no-entry": says(b"", 401),
    "no-number": says(vector(**dict.fromkeys(CASES, "NaN"))),
    "percentages": says(vector(**dict.fromkeys(CASES, "35"))),
}


@pytest.mark.parametrize("name", RUBBISH)
def test_rubbish(tainter: Tainter, before: dict[str, Object], name: str) -> None:
    with impostor(RUBBISH[name]) as server:
        ended = tainter.run(tainter.config(server.url))
    assert ended.code == NO_SAMPLES, ended.text
    assert ended.summary["error"]
    unchanged(tainter, before)


def test_what_an_impostor_would_have_to_say(tainter: Tainter, before: dict[str, Object]) -> None:
    """Otherwise the tests around this one prove nothing; also with TLS, where the certificate is known."""
    with impostor(says(RIGHT), tainter.admin.authority) as server:
        known = {"url": server.url, "caFile": str(tainter.admin.authority)}
        config = tainter.config(known)
        repaired(tainter, config, before)


def test_no_prometheus_at_all(tainter: Tainter, config: Path, before: dict[str, Object]) -> None:
    down = tainter.config(f"http://127.0.0.1:{free_port()}")
    assert tainter.run(down).code == NO_SAMPLES
    unchanged(tainter, before)
    repaired(tainter, config, before)


def test_no_prometheus_for_too_long(tainter: Tainter, config: Path, before: dict[str, Object]) -> None:
    """After the last good pass, which the Lease knows."""
    repaired(tainter, config, before)
    tainter.admin.merge(LEASE, {"metadata": {"annotations": {LAST_GOOD: "2026-01-01T00:00:00Z"}}})
    ended = tainter.run(tainter.config(f"http://127.0.0.1:{free_port()}"))
    assert ended.code == REMOVED, ended.text
    assert {level(node) for node in untouched(tainter, before).values()} == {0}
    repaired(tainter, config, before)


def test_wrong_certificates(tainter: Tainter, config: Path, before: dict[str, Object], tmp_path: Path) -> None:
    empty = tmp_path / "ca.crt"
    empty.write_text("")
    with impostor(says(RIGHT), tainter.admin.authority) as server, impostor(says(RIGHT)) as plain:
        authority = str(tainter.admin.authority)
        wrong: list[dict[str, str]] = [
            {"url": server.url},
            {"url": server.url, "caFile": str(empty)},
            {"url": server.url, "caFile": str(tmp_path / "none")},
            {"url": server.url.replace("127.0.0.1", "127.0.0.2"), "caFile": authority},
            {"url": server.url.replace("https", "http")},
            {"url": plain.url.replace("http", "https"), "caFile": authority},
            {"url": plain.url, "tokenFile": str(tmp_path / "none")},
        ]
        for known in wrong:
            ended = tainter.run(tainter.config(known))
            assert ended.code == NO_SAMPLES, (known, ended.text)
    unchanged(tainter, before)
    repaired(tainter, config, before)


def test_redirects_are_not_followed(tainter: Tainter, before: dict[str, Object]) -> None:
    """A token would go along."""
    with impostor(says(RIGHT)) as other, impostor(says(b"", 302, Location=f"{other.url}/api/v1/query")) as server:
        ended = tainter.run(tainter.config(server.url))
        assert ended.code == NO_SAMPLES, ended.text
        assert not other.asked.is_set()
    unchanged(tainter, before)


@pytest.fixture(scope="module")
def patient(tainter: Tainter) -> Iterator[list[tuple[str, subprocess.Popen[str], float]]]:
    """Passes that wait for a Prometheus, from the beginning of this module on.  They look, and would not write."""
    waiting = Event()

    def hang(_: BaseHTTPRequestHandler) -> None:
        waiting.wait(SECONDS)

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not waiting.wait(1):
            handler.wfile.write(b" ")

    with impostor(hang) as mute, impostor(trickle) as slow:
        found = []
        with fleet(tainter.admin, map(small, CASES), "patient"):
            for name, server in (("mute", mute), ("slow", slow)):
                found.append((name, tainter.start(tainter.config(server.url), "--dry-run"), time.monotonic()))
                assert server.asked.wait(SECONDS)
        yield found
        waiting.set()
        for _, process, _ in found:
            process.kill()
            process.communicate()  # closes its pipe as well


@pytest.fixture(scope="module", autouse=True)
def early(patient: list[tuple[str, subprocess.Popen[str], float]]) -> None:
    """So that nobody waits for them."""


def test_a_prometheus_that_does_not_come_to_an_end(patient: list[tuple[str, subprocess.Popen[str], float]]) -> None:
    for name, process, began in patient:
        ended: Ended = softtaint.ended(process, began)
        assert ended.code == NO_SAMPLES, (name, ended.text)
        assert ended.summary["seconds"] < 100
