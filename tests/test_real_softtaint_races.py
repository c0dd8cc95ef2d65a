"""Passes while others change the same nodes at full speed: nothing of theirs is lost, and ours are right in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from renderer.softtaint.taints import EFFECT, OVERUTILIZED, ours
from tests import softtaint
from tests.softtaint import GOOD, PARTLY, Ended, Tainter, level
from tests.testbed.access import Access
from tests.testbed.fixtures import SERVERS
from tests.testbed.monitoring import Monitoring
from tests.testbed.nodes import Object, fleet, listed, small, taints
from tests.testbed.writers import Writers

pytestmark = SERVERS

CHANGES = 10_000
NODES = 48
KEYS = ["foreign.example/a", "foreign.example/b"]
LOADS = (0.10, 0.35, 0.80)
"""Under-utilized, appropriate and over-utilized by static thresholds of 20 and 50, far from both bands."""
# Nobody changes these: pods can go to them, whatever becomes of the others.
QUIET = [f"quiet-{number}" for number in range(len(LOADS))]
BUSY = [f"busy-{number}" for number in range(NODES)]


def load(name: str, turn: int) -> float:
    """In each turn another one, so that every pass has most of the nodes to write."""
    kind, _, number = name.partition("-")
    return LOADS[(int(number) + (turn if kind == "busy" else 0)) % len(LOADS)]


def query(turn: int) -> str:
    return f'load{{turn="{turn % len(LOADS)}"}}'


@pytest.fixture(scope="module")
def tainter(apiserver: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tainter]:
    with softtaint.installed(apiserver, tmp_path_factory.mktemp("races")) as found:
        yield found


@pytest.fixture(scope="module")
def series(prometheus: Monitoring) -> None:
    prometheus.expose(
        {
            f'load{{turn="{turn}",instance="{name}"}}': str(load(name, turn))
            for turn in range(len(LOADS))
            for name in (*QUIET, *BUSY)
        }
    )


@pytest.mark.usefixtures("series")
def test_nothing_of_others_is_lost(tainter: Tainter, prometheus: Monitoring) -> None:
    configs = [tainter.config(prometheus.url, query(turn)) for turn in range(len(LOADS))]
    with fleet(tainter.admin, map(small, (*QUIET, *BUSY)), "races"):
        writers = Writers(tainter.admin, BUSY, [*KEYS, OVERUTILIZED], ours, CHANGES)
        writers.start()
        passes: list[Ended] = []
        try:
            while writers.busy:
                passes.append(tainter.run(configs[len(passes) % len(configs)]))
        finally:
            writers.stop()
        nodes = listed(tainter.admin)
        assert writers.broken(nodes) == []
        assert writers.made.total() >= CHANGES
        assert set(writers.made) == {"taint", "label", "cordon", "heartbeat"}
        assert min(writers.made.values()) >= CHANGES // 20, writers.made
        told(passes)

        turn = len(passes)
        last = tainter.run(configs[turn % len(configs)])
        assert last.code == GOOD, last.text
        after = listed(tainter.admin)
        assert writers.broken(after) == []
        assert {name: level(after[name]) for name in (*QUIET, *BUSY)} == wanted(after, turn)

        again = tainter.run(configs[turn % len(configs)])
        assert (again.code, again.summary["writes"]) == (GOOD, {}), again.text
        assert listed(tainter.admin) == after


def told(passes: list[Ended]) -> None:
    """The passes met the writers: they wrote, and began anew where a node had changed meanwhile."""
    assert {one.code for one in passes} <= {GOOD, PARTLY}, Counter(one.code for one in passes)
    written = sum(one.summary["writes"].get("written", 0) for one in passes)
    redone = sum(one.summary["redone"] for one in passes)
    assert written > NODES
    assert redone > len(passes)


def wanted(nodes: dict[str, Object], turn: int) -> dict[str, int]:
    """By the load alone, but for cordoned nodes, which are never under-utilized, and where another has our place."""
    found = {name: LOADS.index(load(name, turn)) for name in (*QUIET, *BUSY)}
    cordoned = {name for name in found if nodes[name]["spec"].get("unschedulable")}
    taken = {name for name in found if any(taken_by(taint) for taint in taints(nodes[name]))}
    return {name: max(number, name in cordoned) - (number == 2 and name in taken) for name, number in found.items()}


def taken_by(taint: Object) -> bool:
    """A taint of somebody else where ours would be: the API server allows one of a key and an effect."""
    return (taint["key"], taint["effect"]) == (OVERUTILIZED, EFFECT) and not ours(taint)
