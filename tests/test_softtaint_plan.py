"""Which taints each node is to have: worked examples of the descheduler's arithmetic, rules of the job, properties."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from renderer.softtaint import classify
from renderer.softtaint.classify import Thresholds, Usage, percent
from renderer.softtaint.config import Bounds, Config
from renderer.softtaint.nodes import Node
from renderer.softtaint.plan import Plan, Reason, cleaning, plan
from renderer.softtaint.taints import LEVELS, OVERUTILIZED, Taint
from tests.softtaint_nodes import FAIR, LISTS, OVER, applied, config, foreign, node
from tests.test_classify import VECTORS


def levels(planned: Plan) -> list[int | None]:
    return [choice.level for choice in planned.choices]


def reasons(planned: Plan) -> dict[str, Reason]:
    return {choice.node.name: choice.reason for choice in planned.choices}


def made(points: list[int], *taints: list[Taint], **fields: Any) -> tuple[list[Node], dict[str, int]]:
    """Nodes a, b, c… with their utilization and, in the same order, taints."""
    names = [chr(ord("a") + index) for index in range(len(points))]
    nodes = [node(name, taints[index] if taints else None, **fields) for index, name in enumerate(names)]
    return nodes, dict(zip(names, points, strict=True))


@pytest.mark.parametrize(
    ("samples", "cordoned", "thresholds", "wanted"), [(*vector[:3], vector[4]) for vector in VECTORS]
)
def test_vectors(samples: list[float], cordoned: tuple[int, ...], thresholds: Thresholds, wanted: list[int]) -> None:
    """Without a band and with a share that is not reached, the job does what the operator's own does."""
    nodes = [node(str(index), cordoned=index in cordoned) for index in range(len(samples))]
    points = {str(index): percent(sample) for index, sample in enumerate(samples)}
    chosen = config(thresholds.low, thresholds.high, deviation=thresholds.deviation)
    found = levels(plan(nodes, points, chosen))
    if all(level == 2 for level in wanted):  # alike on all, they would change nothing
        assert found == [0, 2, 2]
    else:
        assert found == wanted


# Utilizations, taints before, taints after; thresholds 20 and 50, a band of 5.
BAND = [
    ([10, 51, 50], [0, 0, 0], [0, 2, 1]),
    ([10, 46, 45], [0, 2, 2], [0, 2, 1]),
    ([10, 25, 26], [0, 0, 0], [0, 0, 1]),
    ([10, 25, 21], [0, 1, 1], [0, 1, 1]),
    ([10, 20, 20], [0, 1, 2], [0, 0, 0]),
    ([21, 30, 51], [0, 1, 2], [0, 1, 2]),
    ([25, 30, 51], [0, 1, 2], [0, 1, 2]),
    ([26, 30, 51], [0, 1, 2], [0, 0, 2]),
    ([21, 30, 51], [0, 0, 0], [0, 0, 2]),
    ([21, 30, 51], [1, 1, 2], [0, 0, 2]),
]


@pytest.mark.parametrize(("points", "before", "after"), BAND)
def test_band(points: list[int], before: list[int], after: list[int]) -> None:
    nodes, samples = made(points, *(LISTS[level] for level in before))
    assert levels(plan(nodes, samples, config(hysteresis_points=5))) == after


def test_bounds_closer_than_the_band_do_not_flap() -> None:
    wide = config(30, 31, hysteresis_points=5)
    nodes, samples = made([10, 35])
    assert levels(plan(nodes, samples, wide)) == [0, 0]
    assert levels(plan(nodes, samples | {"b": 36}, wide)) == [0, 2]
    tainted, _ = made([10, 35], LISTS[0], LISTS[2])
    assert levels(plan(tainted, samples, wide)) == [0, 2]
    assert levels(plan(tainted, samples | {"b": 30}, wide)) == [0, 0]


@pytest.mark.parametrize(
    ("share", "after"), [(100, [2, 2, 2, 0]), (50, [1, 2, 2, 0]), (49, [1, 2, 1, 0]), (24, [1, 1, 1, 0])]
)
def test_the_worst_are_tainted_up_to_the_share(share: int, after: list[int]) -> None:
    nodes, samples = made([60, 80, 70, 10])
    planned = plan(nodes, samples, config(max_tainted_percent=share))
    assert levels(planned) == after
    assert reasons(planned)["a"] == (Reason.OVER if share == 100 else Reason.SHARE)


def test_a_tie_goes_to_the_one_that_has_it_and_then_to_the_first_name() -> None:
    nodes, samples = made([60, 60, 60, 10])
    assert levels(plan(nodes, samples, config(max_tainted_percent=25))) == [2, 1, 1, 0]
    nodes, samples = made([60, 60, 60, 10], LISTS[1], LISTS[1], LISTS[2], LISTS[0])
    assert levels(plan(nodes, samples, config(max_tainted_percent=25))) == [1, 1, 2, 0]


def test_ranks_change_by_more_than_the_band_only() -> None:
    nodes, samples = made([65, 60, 10], LISTS[1], LISTS[2], LISTS[0])
    chosen = config(hysteresis_points=5, max_tainted_percent=34)
    assert levels(plan(nodes, samples, chosen)) == [1, 2, 0]
    assert levels(plan(nodes, samples | {"a": 66}, chosen)) == [2, 1, 0]


def test_nodes_that_keep_the_taint_unseen_use_up_the_share_first() -> None:
    nodes, samples = made([60, 90, 10, 10], LISTS[2], LISTS[0], LISTS[0], LISTS[0])
    del samples["a"]
    planned = plan(nodes, samples, config(max_tainted_percent=25))
    assert levels(planned) == [None, 1, 0, 0]
    assert reasons(planned)["a"] is Reason.KEPT


def test_unseen_nodes_beyond_the_share_lose_the_taint() -> None:
    nodes, _ = made([1, 2, 10, 10], LISTS[2], LISTS[2], LISTS[0], LISTS[0])
    planned = plan(nodes, {"c": 10, "d": 10}, config(max_tainted_percent=25))
    assert levels(planned) == [None, 1, 0, 0]
    assert reasons(planned)["b"] is Reason.SHARE


@pytest.mark.parametrize(("rule", "after"), [("Keep", None), ("Remove", 0)])
@pytest.mark.parametrize("ready", [True, False])
def test_nodes_that_cannot_be_judged(rule: str, after: int | None, ready: bool) -> None:
    nodes, samples = made([10, 90, 30])
    nodes.append(node("z", [OVER, FAIR], ready=ready))
    if not ready:
        samples["z"] = 10
    assert levels(plan(nodes, samples, config(missing_sample=rule))) == [0, 2, 1, after]


def test_a_node_that_is_not_ready_does_not_count_for_the_average() -> None:
    nodes, samples = made([10, 20, 30])
    nodes.append(node("z", ready=False))
    chosen = config(0, 5, deviation=True)
    assert levels(plan(nodes, samples | {"z": 100}, chosen)) == [0, 0, 2, None]


def test_nodes_that_left_the_selector_are_cleaned() -> None:
    nodes, samples = made([10, 90])
    nodes.append(node("z", [OVER, foreign(), FAIR], in_scope=False))
    planned = plan(nodes, samples | {"z": 90}, config())
    assert levels(planned) == [0, 2, 0]
    assert planned.choices[2].wanted == [foreign()]
    assert planned.scope == 2


def test_a_cordoned_node_is_never_under_utilized() -> None:
    nodes, samples = made([10, 90])
    nodes.append(node("z", cordoned=True))
    assert levels(plan(nodes, samples | {"z": 0}, config(hysteresis_points=5))) == [0, 2, 1]


MARKS = [
    [foreign("ToBeDeletedByClusterAutoscaler")],
    [foreign("karpenter.sh/disruption", "NoSchedule", "disrupting")],
    [foreign("karpenter.sh/disrupted")],
]


@pytest.mark.parametrize("mark", MARKS)
def test_nodes_that_are_marked_for_deletion_are_left_alone(mark: list[Taint]) -> None:
    for taints in (mark, [OVER, FAIR, *mark], [*mark, FAIR]):
        nodes, samples = made([90, 10])
        nodes.append(node("z", taints))
        for points in (5, 95):
            planned = plan(nodes, samples | {"z": points}, config(40, 41, deviation=True))
            assert planned.choices[2].wanted is None
            assert planned.judged == 3
        assert cleaning(nodes).choices[2].wanted is None


def test_a_node_in_deletion_is_left_alone_and_a_mere_candidate_is_not() -> None:
    nodes, samples = made([10, 90])
    nodes[1] = node("b", deleted=True)
    assert levels(plan(nodes, samples, config())) == [0, None]
    nodes[1] = node("b", [foreign("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule")])
    assert levels(plan(nodes, samples, config())) == [0, 2]


def test_marked_nodes_use_up_the_share() -> None:
    nodes, samples = made([90, 10, 10])
    nodes.append(node("z", [OVER, FAIR, *MARKS[0]]))
    assert levels(plan(nodes, samples | {"z": 5}, config(max_tainted_percent=25))) == [1, 0, 0, None]


@pytest.mark.parametrize("taints", [None, [OVER, FAIR]])
def test_a_single_node_has_no_taints(taints: list[Taint] | None) -> None:
    nodes = [node("a", taints), node("z", [FAIR], in_scope=False)]
    planned = plan(nodes, {"a": 90}, config())
    assert levels(planned) == [0, 0]
    assert reasons(planned) == {"a": Reason.SINGLE, "z": Reason.OUTSIDE}


def test_all_over_leaves_the_least_loaded_for_pods_to_go_to() -> None:
    nodes, samples = made([90, 80, 70])
    assert levels(plan(nodes, samples, config())) == [2, 2, 0]
    nodes[2] = node("c", cordoned=True)
    assert levels(plan(nodes, samples, config())) == [2, 0, 2]


def test_one_is_left_even_where_pods_can_go_to_none() -> None:
    nodes, samples = made([90, 80, 70], cordoned=True)
    assert levels(plan(nodes, samples, config())) == [2, 2, 0]


def test_a_node_that_cannot_have_our_taint_counts_as_appropriate() -> None:
    """Somebody else's taint has the key; the share goes to others."""
    nodes, samples = made([90, 80, 10], [{**OVER, "value": "yes"}], [], [])
    planned = plan(nodes, samples, config(max_tainted_percent=34))
    assert levels(planned) == [1, 2, 0]
    assert reasons(planned)["a"] is Reason.BARRED


def test_only_nodes_that_pods_can_go_to_make_the_others_worse() -> None:
    """An under-utilized node that takes no pods gives no reason to taint all the others alike."""
    nodes, samples = made([30, 40])
    nodes.append(node("z", [foreign()]))
    assert levels(plan(nodes, samples | {"z": 5}, config())) == [0, 0, 0]
    assert levels(plan([*nodes, node("y")], samples | {"z": 5, "y": 5}, config())) == [1, 1, 0, 0]


def test_nodes_that_are_all_reserved_are_planned_like_others() -> None:
    nodes, samples = made([10, 30, 60], *[[foreign()]] * 3)
    assert levels(plan(nodes, samples, config())) == [0, 1, 2]


def test_no_sample_at_all_keeps_all() -> None:
    nodes, _ = made([1, 2], LISTS[1], LISTS[2])
    planned = plan(nodes, {}, config())
    assert levels(planned) == [None, None]
    assert (planned.judged, planned.low) == (0, None)


def test_cleaning() -> None:
    nodes = [node("a", [OVER, foreign(), FAIR]), node("b", [foreign()]), node("c", [FAIR], in_scope=False)]
    assert [choice.wanted for choice in cleaning(nodes).choices] == [[foreign()], None, []]


# Properties

STATES: list[list[Taint]] = [
    *LISTS,
    [OVER],
    [foreign()],
    [foreign("a", "PreferNoSchedule"), FAIR],
    [*MARKS[0], OVER, FAIR],
    [{**OVER, "value": "x"}, FAIR],
    [{**FAIR, "effect": "NoSchedule"}],
]


@st.composite
def clusters(draw: st.DrawFn, states: list[list[Taint]] = STATES) -> tuple[list[Node], dict[str, int]]:
    nodes, points = [], {}
    for index in range(draw(st.integers(1, 12))):
        name = f"n{index:02}"
        flags = draw(st.integers(0, 31))
        nodes.append(
            node(
                name,
                draw(st.sampled_from(states)),
                in_scope=flags % 8 != 7,
                ready=flags % 8 != 6,
                cordoned=flags % 8 == 5,
                deleted=flags == 31,
            )
        )
        if flags % 16 != 4:
            points[name] = draw(st.integers(0, 100))
    return nodes, points


@st.composite
def configs(draw: st.DrawFn, *, deviation: bool | None = None) -> Config:
    low, high = draw(st.integers(0, 100)), draw(st.integers(0, 100))
    relative = draw(st.booleans()) if deviation is None else deviation
    if not relative:
        low, high = sorted((low, high))
    return config(
        thresholds=Bounds(low=low, high=high, deviation=relative),
        hysteresis_points=draw(st.integers(0, 30)),
        max_tainted_percent=draw(st.integers(0, 100)),
        missing_sample=draw(st.sampled_from(["Keep", "Remove"])),
    )


def judged(nodes: list[Node], points: dict[str, int]) -> list[Node]:
    return [one for one in nodes if one.in_scope and one.ready and one.name in points]


many = settings(max_examples=150, deadline=None)


@given(clusters(), configs(), st.integers())
@many
def test_the_order_of_nodes_changes_nothing(
    cluster: tuple[list[Node], dict[str, int]], chosen: Config, seed: int
) -> None:
    nodes, points = cluster
    shuffled = random.Random(seed).sample(nodes, len(nodes))  # noqa: S311  (no secret)
    assert plan(shuffled, points, chosen) == plan(nodes, points, chosen)


@given(clusters(), configs())
@many
def test_planning_again_changes_nothing(cluster: tuple[list[Node], dict[str, int]], chosen: Config) -> None:
    nodes, points = cluster
    after = applied(plan(nodes, points, chosen))
    assert [choice.wanted for choice in plan(after, points, chosen).choices] == [None] * len(nodes)


@given(clusters(), configs())
@many
def test_no_under_utilized_node_keeps_a_taint(cluster: tuple[list[Node], dict[str, int]], chosen: Config) -> None:
    nodes, points = cluster
    listed = [classify.Node(one.name, points[one.name], one.cordoned) for one in judged(nodes, points)]
    classes = classify.classify(listed, chosen.bounds)
    for one in applied(plan(nodes, points, chosen)):
        if classes.get(one.name) is Usage.UNDER and not one.marked:
            assert not one.keys


@given(clusters(), configs())
@many
def test_the_share_holds_and_the_worst_come_first(cluster: tuple[list[Node], dict[str, int]], chosen: Config) -> None:
    nodes, points = cluster
    planned = plan(nodes, points, chosen)
    scope = [one for one in applied(planned) if one.in_scope]
    over = [one for one in scope if OVERUTILIZED in one.keys]
    stuck = [one for one in over if one.marked]  # nobody takes it from them
    limit = min(len(scope) * chosen.max_tainted_percent // 100, len(scope) - 1)
    assert len(over) <= max(limit, len(stuck))
    beyond = [
        one for one in planned.choices if one.reason is Reason.SHARE and one.points is not None and one.node.feasible
    ]
    tainted = [one for one in planned.choices if one.level == 2 and one.node.feasible]
    for worse in tainted:
        for better in beyond:
            assert worse.points is not None
            assert better.points is not None
            assert worse.points + chosen.hysteresis_points >= better.points


@given(clusters(), configs())
@many
def test_feasible_nodes_are_never_all_alike(cluster: tuple[list[Node], dict[str, int]], chosen: Config) -> None:
    nodes, points = cluster
    planned = plan(nodes, points, chosen)
    found = {choice.level for choice in planned.choices if choice.points is not None and choice.node.feasible}
    assert found not in ({1}, {2})


@given(clusters(), configs(deviation=False), st.data())
@many
def test_more_load_never_means_fewer_taints(
    cluster: tuple[list[Node], dict[str, int]], chosen: Config, data: st.DataObject
) -> None:
    """Under static thresholds, for a node of its own; a single one without others is none."""
    nodes, points = cluster
    listed = judged(nodes, points)
    if not listed:
        return
    name = data.draw(st.sampled_from(listed)).name
    more = points | {name: data.draw(st.integers(points[name], 100))}
    [low], [high] = (
        [choice.level or 0 for choice in plan(nodes, samples, chosen).choices if choice.node.name == name]
        for samples in (points, more)
    )
    assert low <= high


@given(clusters(), configs(deviation=False), st.data())
@many
def test_a_change_smaller_than_the_band_flips_nothing(
    cluster: tuple[list[Node], dict[str, int]], chosen: Config, data: st.DataObject
) -> None:
    """While the load of one node stays in a window narrower than the band, no taint comes or goes more than once."""
    nodes, points = cluster
    listed = judged(nodes, points)
    if not listed:
        return
    name = data.draw(st.sampled_from(listed)).name
    width = max(chosen.hysteresis_points - 1, 0)
    lowest = data.draw(st.integers(0, 100 - width))
    walk = data.draw(st.lists(st.integers(lowest, lowest + width), min_size=2, max_size=8))
    current = applied(plan(nodes, points | {name: walk[0]}, chosen))
    changes: Counter[tuple[str, str]] = Counter()
    for step in walk[1:]:
        after = applied(plan(current, points | {name: step}, chosen))
        before = {one.name: one.keys for one in current}
        changes.update((one.name, key) for one in after for key in one.keys ^ before[one.name])
        current = after
    assert max(changes.values(), default=0) <= 1


@given(clusters([[]]), configs())
@many
def test_without_memory_and_share_it_is_what_the_operator_does(
    cluster: tuple[list[Node], dict[str, int]], chosen: Config
) -> None:
    """Up to the rule that not all may be tainted: where all nodes take pods, and none has taints yet."""
    nodes = [node(one.name) for one in cluster[0]]
    points = {one.name: cluster[1].get(one.name, 50) for one in nodes}
    if len(nodes) < 2:
        return
    plain = config(thresholds=chosen.thresholds)
    classes = classify.classify([classify.Node(one.name, points[one.name]) for one in nodes], chosen.bounds)
    wanted = classify.taints(classes)
    if set(wanted.values()) == {2}:
        wanted[max(wanted, key=lambda name: (-points[name], name))] = 0
    assert {choice.node.name: choice.level for choice in plan(nodes, points, plain).choices} == wanted


def test_levels_are_classes() -> None:
    assert [len(keys) for keys in LEVELS] == [Usage.UNDER, Usage.APPROPRIATE, Usage.OVER]
