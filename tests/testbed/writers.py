"""People and programs that change nodes at full speed, and remember what has to be there in the end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

from tests.testbed.access import Access, Refused
from tests.testbed.nodes import JSON_PATCH, MERGE_PATCH, NODES, Object, Wire, condition, taints

STRATEGIC_PATCH = "application/strategic-merge-patch+json"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_CONFLICTS = (409, 422)
_MOST = 5
"""Foreign taints that a node has at once."""

Ours = Callable[[Object], bool]


class Truth:
    """What the writers left on one node.  Each field has a single writer, so that nothing but the job can undo it."""

    def __init__(self) -> None:
        self.taints: list[Object] = []
        self.label = ""
        self.unschedulable = False
        self.heartbeat = ""

    def broken(self, node: Object, ours: Ours) -> list[str]:
        """What the node no longer has."""
        metadata, spec = node["metadata"], node["spec"]
        beats = [found["lastHeartbeatTime"] for found in node["status"]["conditions"] if found["type"] == "Ready"]
        seen = {
            "taints": ([taint for taint in taints(node) if not ours(taint)], self.taints),
            "label": (metadata["labels"].get(_LABEL, ""), self.label),
            "unschedulable": (spec.get("unschedulable", False), self.unschedulable),
            "heartbeat": (beats[0], self.heartbeat or beats[0]),
        }
        name = metadata["name"]
        return [f"{name}: {field} {found}, not {left}" for field, (found, left) in seen.items() if found != left]


_LABEL = "foreign.example/change"


class Writers:
    """Threads that change the nodes, all day long, until they have made so many changes together.

    `keys` are those of their taints; `ours` tells the taints of the job from theirs, which they leave where they are.
    """

    def __init__(self, access: Access, names: Sequence[str], keys: Sequence[str], ours: Ours, changes: int) -> None:
        self.truth = {name: Truth() for name in names}
        self.made: Counter[str] = Counter()
        """Changes that the server confirmed, by their kind."""
        self._access, self._keys, self._ours, self._wanted = access, keys, ours, changes
        self._stop, self._errors = Event(), list[BaseException]()
        halves = [list(names)[half::2] for half in (0, 1)]
        jobs = [*((self._taint, half) for half in halves), *((job, list(names)) for job in self._others())]
        self._threads = [Thread(target=self._run, args=(*job, seed), daemon=True) for seed, job in enumerate(jobs)]

    def _others(self) -> list[Callable[[Wire, str, random.Random], None]]:
        return [self._label, self._cordon, self._beat]

    @property
    def busy(self) -> bool:
        """Whether there is still something to do, and nothing went wrong."""
        return self.made.total() < self._wanted and not self._errors

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish what is under way.  Raises what went wrong in a thread."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for error in self._errors:
            raise error

    def broken(self, nodes: dict[str, Object]) -> list[str]:
        """All that was lost, or put into another order."""
        return [line for name, truth in self.truth.items() for line in truth.broken(nodes[name], self._ours)]

    def _run(self, job: Callable[[Wire, str, random.Random], None], names: list[str], seed: int) -> None:
        chance, wire = random.Random(seed), Wire(self._access)  # noqa: S311  (the same changes each time)
        try:
            while not self._stop.is_set() and self.busy:
                job(wire, chance.choice(names), chance)
        except BaseException as error:  # noqa: BLE001  (raised by `stop`)
            self._errors.append(error)
        finally:
            wire.close()

    def _label(self, wire: Wire, name: str, chance: random.Random) -> None:
        value = str(chance.getrandbits(60))
        wire.send("PATCH", f"{NODES}/{name}", {"metadata": {"labels": {_LABEL: value}}}, MERGE_PATCH)
        self.truth[name].label = value
        self.made["label"] += 1

    def _cordon(self, wire: Wire, name: str, chance: random.Random) -> None:
        wanted = not self.truth[name].unschedulable
        wire.send("PATCH", f"{NODES}/{name}", {"spec": {"unschedulable": wanted or None}}, MERGE_PATCH)
        self.truth[name].unschedulable = wanted
        self.made["cordon"] += 1

    def _beat(self, wire: Wire, name: str, chance: random.Random) -> None:
        time = _time(chance)
        change = {"status": {"conditions": [condition("Ready", "True", time)]}}
        wire.send("PATCH", f"{NODES}/{name}/status", change, STRATEGIC_PATCH)
        self.truth[name].heartbeat = time
        self.made["heartbeat"] += 1

    def _taint(self, wire: Wire, name: str, chance: random.Random) -> None:
        """A node has one writer of taints, which need not be careful: whatever it overwrites is ours."""
        write = chance.choice([self._tested, self._versioned, self._replaced, self._careless])
        node = wire.send("GET", f"{NODES}/{name}")
        wanted = self._changed(taints(node), chance)
        if wanted == taints(node):
            return
        try:
            write(wire, node, wanted)
        except Refused as refused:
            if refused.status not in _CONFLICTS:
                raise
            return
        self.truth[name].taints = [taint for taint in wanted if not self._ours(taint)]
        self.made["taint"] += 1

    def _changed(self, before: list[Object], chance: random.Random) -> list[Object]:
        """The list with one taint of others more, less, elsewhere or with another value."""
        after = list(before)
        places = [index for index, taint in enumerate(after) if not self._ours(taint)]
        taken = {(taint["key"], taint["effect"]) for taint in after}
        free = [(key, effect) for key in self._keys for effect in EFFECTS if (key, effect) not in taken]
        match chance.choice(["add", "remove", "move", "value"]) if places else "add":
            case "add" if len(places) < _MOST:
                key, effect = chance.choice(free)
                after.insert(chance.randrange(len(after) + 1), _foreign(key, effect, chance))
            case "value":
                place = chance.choice(places)
                after[place] = _foreign(after[place]["key"], after[place]["effect"], chance)
            case "move":
                after.insert(chance.randrange(len(after)), after.pop(chance.choice(places)))
            case _:
                del after[chance.choice(places)]
        return after

    def _tested(self, wire: Wire, node: Object, wanted: list[Object]) -> None:
        self._patch(wire, node, wanted, {"op": "test", "path": "/spec/taints", "value": node["spec"].get("taints")})

    def _versioned(self, wire: Wire, node: Object, wanted: list[Object]) -> None:
        version = node["metadata"]["resourceVersion"]
        self._patch(wire, node, wanted, {"op": "test", "path": "/metadata/resourceVersion", "value": version})

    def _patch(self, wire: Wire, node: Object, wanted: list[Object], test: Object) -> None:
        change = {"op": "add", "path": "/spec/taints", "value": wanted}
        wire.send("PATCH", f"{NODES}/{node['metadata']['name']}", [test, change], JSON_PATCH)

    def _replaced(self, wire: Wire, node: Object, wanted: list[Object]) -> None:
        wire.send("PUT", f"{NODES}/{node['metadata']['name']}", {**node, "spec": {**node["spec"], "taints": wanted}})

    def _careless(self, wire: Wire, node: Object, wanted: list[Object]) -> None:
        wire.send("PATCH", f"{NODES}/{node['metadata']['name']}", {"spec": {"taints": wanted}}, MERGE_PATCH)


def _foreign(key: str, effect: str, chance: random.Random) -> Object:
    taint = {"key": key, "effect": effect, "value": str(chance.getrandbits(30))}
    return taint | ({"timeAdded": _time(chance)} if chance.random() < 0.5 else {})


def _time(chance: random.Random) -> str:
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(10**8))
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
