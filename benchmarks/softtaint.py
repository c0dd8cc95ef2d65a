"""Measures passes of the soft-tainter on a real API server with 100 to 5,000 nodes of realistic size.

Beside each first pass runs a bare loop that sends the same patches.  Prints a table and the goals, met or missed; a
missed goal is no failure, since machines and their load differ.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from measure import Failed, Run, run

from renderer.softtaint.taints import APPROPRIATE, EFFECT, OVERUTILIZED, VALUE
from renderer.softtaint.writing import THREADS
from tests import softtaint
from tests.softtaint import Tainter
from tests.testbed import build
from tests.testbed.access import Access
from tests.testbed.control_plane import control_plane
from tests.testbed.monitoring import Monitoring, prometheus
from tests.testbed.nodes import JSON_PATCH, METADATA, NODES, add, large, wires

HERE = Path(__file__).resolve().parent
SIZES = (100, 1_000, 5_000)
LOADS = (0.10, 0.35, 0.10, 0.80)
"""Of every four nodes: two without taints, one with one, one with both; static thresholds of 20 and 50."""
COUNTS = (0, 1, 0, 2)
EVENTS = "/api/v1/namespaces/default/events"
SHARE = 20
"""One node of so many has another load in the last pass."""
_MIB = 1 << 20
_LARGE = 5_000


@dataclass(frozen=True, slots=True)
class Row:
    """A pass: seconds and bytes of its process, how many nodes it had to change, its requests by verb and code.

    `bare` is what the same patches took in a bare loop, in seconds.
    """

    what: str
    nodes: int
    changed: int
    wall: float
    cpu: float
    peak: int
    requests: dict[str, int]
    redone: int
    bare: float | None = None


@dataclass(slots=True)
class Bench:
    """Where is measured; rows are printed as they come."""

    tainter: Tainter
    monitoring: Monitoring
    log: IO[bytes]
    rows: list[Row] = field(default_factory=list)

    def once(self, what: str, nodes: int, changed: int, query: str, **settings: Any) -> Row:
        config = self.tainter.config(self.monitoring.url, query, **settings)
        environment = softtaint.environment()
        found = run(self.tainter.command(config), cwd=HERE, environment=environment, log=self.log)
        self.log.seek(0)
        summary = json.loads(self.log.read().splitlines()[-1])
        written = summary["writes"].get("written", 0)
        if written != changed:
            raise Failed(f"{what} of {nodes:,} nodes wrote {written} instead of {changed}")
        return _row(what, nodes, changed, found, summary)

    def add(self, row: Row) -> None:
        self.rows.append(row)
        print(_line(row), flush=True)


def main() -> int:
    """Runs what the arguments ask for, prints it, and writes it as JSON."""
    given = _arguments()
    print(f"{_machine()}; Python {platform.python_version()}; the best of {given.runs} runs.\n")
    print("| pass | nodes | changed | wall s | bare loop s | CPU s | peak MiB | requests |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    try:
        with tempfile.TemporaryDirectory(prefix="kubevirt-policy-bench-") as folder, bench(Path(folder)) as found:
            for nodes in given.sizes:
                _measure(found, nodes, given.runs if nodes < _LARGE else max(1, given.runs - 1))
    except (Failed, build.NoGo, build.BuildFailed) as error:
        print(error, file=sys.stderr)
        return 1
    goals = list(_goals(found.rows))
    print("\nGoals:\n" + "\n".join(f"- {goal}" for goal in goals))
    given.json.write_text(json.dumps({"machine": _machine(), "rows": [*map(asdict, found.rows)], "goals": goals}))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each pass; one less for the largest fleet")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="nodes of the fleets")
    parser.add_argument(
        "--json", type=Path, default=HERE / "results-softtaint.json", metavar="FILE", help="where to write it all"
    )
    return parser.parse_args()


@contextmanager
def bench(folder: Path) -> Iterator[Bench]:
    """An API server with all that is rendered, the admission policy too, and a Prometheus."""
    etcd, apiserver, server = (build.program(name, _say) for name in ("etcd", "kube-apiserver", "prometheus"))
    parts = [folder / name for name in ("kubernetes", "prometheus", "tainter")]
    for part in parts:
        part.mkdir()
    with (
        control_plane(etcd, apiserver, parts[0]) as plane,
        prometheus(server, parts[1]) as monitoring,
        softtaint.installed(plane.admin, parts[2]) as tainter,
        tempfile.TemporaryFile() as log,
    ):
        yield Bench(tainter, monitoring, log)


def _measure(bench: Bench, nodes: int, runs: int) -> None:
    """The bare loop and the first pass in turn, each on nodes without taints; of the others the last round counts."""
    changed = sum(1 for number in range(nodes) if COUNTS[number % 4])
    moved = len(range(0, nodes, SHARE))
    _series(bench.monitoring, nodes)
    with _fleet(bench.tainter.admin, nodes):
        rounds: list[dict[str, Row]] = []
        bare: list[float] = []
        for _ in range(runs):
            bare.append(_bare(bench.tainter.account, nodes))
            bench.once("clean", nodes, changed, _query("before"), mode="RemoveOnly")
            bench.tainter.admin.delete(EVENTS)  # old ones would be raised, in two requests more
            rounds.append(
                {
                    "first": bench.once("first", nodes, changed, _query("before")),
                    "nothing to do": bench.once("nothing to do", nodes, 0, _query("before")),
                    "5 % changed": bench.once("5 % changed", nodes, moved, _query("after")),
                }
            )
            tainted = changed + sum(1 for number in range(0, nodes, SHARE) if not COUNTS[number % 4])
            cleaned = bench.once("all removed", nodes, tainted, _query("before"), mode="RemoveOnly")
            rounds[-1]["all removed"] = cleaned
    for what in rounds[0]:
        best = min((found[what] for found in rounds), key=lambda row: row.wall)
        peak = max(found[what].peak for found in rounds)
        loop = min(bare) if what == "first" else None
        bench.add(Row(**{**asdict(best), "peak": peak, "bare": loop}))


def _query(when: str) -> str:
    return f'load{{at="{when}"}}'


def _name(number: int) -> str:
    return f"node-{number:05}"


@contextmanager
def _fleet(admin: Access, nodes: int) -> Iterator[None]:
    """In processes of their own: what a child's peak is said to be is at least its parent's."""
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(2, context) as pool:
            list(pool.map(_make, [(admin, range(start, nodes, 2)) for start in range(2)]))
        yield
    finally:
        admin.delete(NODES)


def _make(job: tuple[Access, range]) -> None:
    admin, numbers = job
    with wires(admin) as wire, ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda number: add(wire(), large(_name(number))), numbers))


def _series(monitoring: Monitoring, nodes: int) -> None:
    loads = {_name(number): LOADS[number % 4] for number in range(nodes)}
    moved = {_name(number): LOADS[(number + 1) % 4] for number in range(0, nodes, SHARE)}
    samples = {("before", name): load for name, load in loads.items()}
    samples |= {("after", name): load for name, load in {**loads, **moved}.items()}
    monitoring.expose({f'load{{at="{at}",instance="{name}"}}': str(load) for (at, name), load in samples.items()})


def _bare(account: Access, nodes: int) -> float:
    """Seconds that the patches of a first pass take, from as many threads as the job has, and nothing around them."""
    lists = {
        count: [_taint(key) for key in keys] for count, keys in ((1, [APPROPRIATE]), (2, [OVERUTILIZED, APPROPRIATE]))
    }
    with wires(account) as wire, ThreadPoolExecutor(THREADS) as pool:

        def send(number: int) -> None:
            wanted = lists[COUNTS[number % 4]]
            guard = {"op": "test", "path": "/spec/taints", "value": None}
            change = {"op": "add", "path": "/spec/taints", "value": wanted}
            wire().send("PATCH", f"{NODES}/{_name(number)}", [guard, change], JSON_PATCH, METADATA)

        numbers = [number for number in range(nodes) if COUNTS[number % 4]]
        began = time.perf_counter()
        list(pool.map(send, numbers))
        return time.perf_counter() - began


def _taint(key: str) -> dict[str, str]:
    return {"key": key, "value": VALUE, "effect": EFFECT}


def _row(what: str, nodes: int, changed: int, found: Run, summary: dict[str, Any]) -> Row:
    return Row(what, nodes, changed, found.wall, found.cpu, found.peak, summary["requests"], summary["redone"])


def _goals(rows: Sequence[Row]) -> Iterator[str]:
    most = max(row.nodes for row in rows)
    [first] = [row for row in rows if (row.what, row.nodes) == ("first", most)]
    factor = first.wall / (first.bare or first.wall)
    peak = max(row.peak for row in rows) / _MIB
    name = f"first pass of {most:,} nodes"
    yield f"{name} in at most 5 s of CPU: {first.cpu:.2f} s, {_judged(first.cpu <= 5)}"
    yield f"{name} in at most 1.3 times a bare loop: {factor:.2f}, {_judged(factor <= 1.3)}"
    yield f"below 150 MiB: {peak:.0f} MiB, {_judged(peak <= 150)}"
    conflicts = sum(_count(row, "PATCH 409") + _count(row, "PATCH 422") + row.redone for row in rows)
    yield f"no conflict without a foreign writer: {conflicts}, {_judged(conflicts == 0)}"
    single = all(_patches(row) - _events(row) == row.changed for row in rows)
    yield f"one write for each changed node, none where nothing changed: {_judged(single)}"


def _count(row: Row, name: str) -> int:
    return row.requests.get(name, 0)


def _patches(row: Row) -> int:
    return sum(count for name, count in row.requests.items() if name.startswith("PATCH "))


def _events(row: Row) -> int:
    """Events that were there already are patched: their creation was refused before."""
    return _count(row, "POST 409")


def _judged(met: bool) -> str:
    return "met" if met else "missed"


def _line(row: Row) -> str:
    requests = ", ".join(f"{count:,} {name}" for name, count in row.requests.items())
    bare = "" if row.bare is None else f"{row.bare:.2f}"
    figures = f"{row.wall:.2f} | {bare} | {row.cpu:.2f} | {row.peak / _MIB:.0f}"
    return f"| {row.what} | {row.nodes:,} | {row.changed:,} | {figures} | {requests} |"


def _machine() -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{datetime.now(UTC):%Y-%m-%d}; {os.cpu_count()} cores, load {load}; {platform.system()} {platform.machine()}"
    )


def _say(text: str) -> None:
    print(f"test bed: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
