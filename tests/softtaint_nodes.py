"""What the tests of the soft-tainter's program share: nodes, configurations, taints."""

from __future__ import annotations

from typing import Any

import msgspec

from renderer.softtaint.config import Bounds, Config, Prometheus
from renderer.softtaint.nodes import Node
from renderer.softtaint.plan import Plan
from renderer.softtaint.taints import APPROPRIATE, EFFECT, OVERUTILIZED, VALUE, Taint

OVER: Taint = {"key": OVERUTILIZED, "value": VALUE, "effect": EFFECT}
FAIR: Taint = {"key": APPROPRIATE, "value": VALUE, "effect": EFFECT}
LISTS: tuple[list[Taint], ...] = ([], [FAIR], [OVER, FAIR])


def foreign(key: str = "dedicated", effect: str = "NoSchedule", value: str = "database", **more: str) -> Taint:
    return {"key": key, "value": value, "effect": effect, **more}


def node(name: str, taints: list[Taint] | None = None, **fields: Any) -> Node:
    return Node(name, f"uid-of-{name}", taints or None, **fields)


def config(low: int = 20, high: int = 50, *, deviation: bool = False, **changes: Any) -> Config:
    plain = Config(
        format=1,
        mode="Enforce",
        run_as="CronJob",
        every_seconds=120,
        query="load",
        thresholds=Bounds(low=low, high=high, deviation=deviation),
        hysteresis_points=0,
        max_tainted_percent=100,
        missing_sample="Keep",
        stale_after_seconds=600,
        node_selector={"kubevirt.io/schedulable": "true"},
        prometheus=Prometheus(url="http://127.0.0.1:9090"),
    )
    return msgspec.structs.replace(plain, **changes)


def applied(plan: Plan) -> list[Node]:
    """The nodes as they are once the plan is carried out."""
    after = []
    for choice in plan.choices:
        listed = choice.node.taints if choice.wanted is None else choice.wanted or None
        after.append(msgspec.structs.replace(choice.node, taints=listed))
    return after
