"""The list of taints that a node should have: ours added and removed, all others as and where they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer.softtaint.taints import APPROPRIATE, LEVELS, OVERUTILIZED, Taint, keys, ours, settled, strangers
from tests.softtaint_nodes import FAIR, OVER, foreign

A, B, C = (foreign(key) for key in "abc")
DATED: Taint = {**OVER, "timeAdded": "2026-01-02T03:04:05Z"}
HARD: Taint = {**OVER, "effect": "NoSchedule"}
NAMED: Taint = {**OVER, "value": "yes"}

# As it was, the level, as it should be.
LISTS = [
    (None, 0, []),
    (None, 1, [FAIR]),
    (None, 2, [OVER, FAIR]),
    ([OVER, FAIR], 2, [OVER, FAIR]),
    ([FAIR], 2, [FAIR, OVER]),
    ([OVER], 2, [OVER, FAIR]),
    ([OVER], 1, [FAIR]),
    ([OVER, FAIR], 0, []),
    ([A, B], 2, [A, B, OVER, FAIR]),
    ([A, OVER, B, FAIR, C], 0, [A, B, C]),
    ([A, OVER, B, FAIR, C], 1, [A, B, FAIR, C]),
    ([A, OVER, B], 2, [A, OVER, B, FAIR]),
    ([DATED, A], 2, [DATED, A, FAIR]),
    ([DATED, A], 0, [A]),
    ([OVER, A, OVER], 2, [OVER, A, FAIR]),
    ([HARD], 0, [HARD]),
    ([HARD], 2, [HARD, OVER, FAIR]),
    ([HARD, OVER], 0, [HARD]),
    ([NAMED], 0, [NAMED]),
    ([NAMED], 2, [NAMED, FAIR]),
]


@pytest.mark.parametrize(("before", "level", "after"), LISTS)
def test_lists(before: list[Taint] | None, level: int, after: list[Taint]) -> None:
    assert settled(before, LEVELS[level]) == after


@pytest.mark.parametrize("taint", [OVER, FAIR, DATED])
def test_ours(taint: Taint) -> None:
    assert ours(taint)


@pytest.mark.parametrize(
    "taint", [A, HARD, NAMED, {"key": OVERUTILIZED, "effect": "PreferNoSchedule"}, foreign(OVERUTILIZED + "x")]
)
def test_not_ours(taint: Taint) -> None:
    assert not ours(taint)


def test_what_somebody_else_set_with_our_key_is_named() -> None:
    assert strangers([A, OVER, HARD, NAMED]) == [
        f"{OVERUTILIZED}=true:NoSchedule",
        f"{OVERUTILIZED}=yes:PreferNoSchedule",
    ]
    assert strangers(None) == []


some = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from(["a", "b", OVERUTILIZED, APPROPRIATE])},
        optional={
            "value": st.sampled_from(["true", "false", ""]),
            "effect": st.sampled_from(["PreferNoSchedule", "NoSchedule", "NoExecute"]),
            "timeAdded": st.just("2026-01-02T03:04:05Z"),
            "field-to-come": st.just("value"),
        },
    ),
    max_size=8,
)


@given(some, st.integers(0, 2))
def test_all_others_stay_as_and_where_they_were(before: list[Taint], level: int) -> None:
    after = settled(before, LEVELS[level])
    assert [taint for taint in after if not ours(taint)] == [taint for taint in before if not ours(taint)]
    assert keys(after) <= LEVELS[level]
    assert settled(after, LEVELS[level]) == after
