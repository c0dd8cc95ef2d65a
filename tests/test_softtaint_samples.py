"""What counts as a sample, and what is wrong with the others."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer.softtaint.samples import AnswerError, Reason, Rejected, Samples, compare, counts, expression, read

NOW = 1_800_000_000.5
STALE = 600
PART = "kubevirt_policy_part"


def series(node: str, value: str, part: str = "value", **labels: str) -> dict[str, object]:
    return {"metric": {"instance": node, PART: part, **labels}, "value": [NOW, value]}


def sample(node: str, value: str, age: float = 15, **labels: str) -> list[dict[str, object]]:
    return [series(node, value, **labels), series(node, str(NOW - age), "timestamp", **labels)]


def answer(*parts: list[dict[str, object]], kind: str = "vector") -> bytes:
    result = [one for part in parts for one in part]
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


def test_samples_are_points() -> None:
    found = read(answer(sample("a", "0"), sample("b", "0.29"), sample("c", "1"), sample("d", "5e-1")), STALE)
    assert found == Samples({"a": 0, "b": 28, "c": 100, "d": 50}, [])


WRONG = [
    (sample("a", "NaN"), Reason.NOT_FINITE),
    (sample("a", "+Inf"), Reason.NOT_FINITE),
    (sample("a", "-Inf"), Reason.NOT_FINITE),
    (sample("a", "1.0000001"), Reason.OUT_OF_RANGE),
    (sample("a", "42"), Reason.OUT_OF_RANGE),
    (sample("a", "-0.01"), Reason.OUT_OF_RANGE),
    (sample("a", "0.5", STALE + 1), Reason.STALE),
    (sample("a", "0.5")[:1], Reason.STALE),
    (sample("a", "0.5", pod="x") + sample("a", "0.5", pod="y"), Reason.TWO_SERIES),
    ([*sample("a", "0.5"), series("a", "0.6", mode="x")], Reason.TWO_SERIES),
    (sample("", "0.5"), Reason.NO_NODE),
    ([{"metric": {PART: "value"}, "value": [NOW, "0.5"]}], Reason.NO_NODE),
    ([{"metric": {"instance": "a", PART: "value"}, "histogram": [NOW, {}]}], Reason.NOT_FINITE),
]


@pytest.mark.parametrize(("wrong", "reason"), WRONG)
def test_one_wrong_series_does_not_stop_the_others(wrong: list[dict[str, object]], reason: Reason) -> None:
    found = read(answer(sample("z", "0.5"), wrong), STALE)
    assert found.points == {"z": 50}
    assert [one.reason for one in found.rejected] == [reason]


@pytest.mark.parametrize("age", [STALE, 0, -3])
def test_a_sample_may_be_as_old_as_that(age: float) -> None:
    assert read(answer(sample("a", "0.5", age)), STALE).points == {"a": 50}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"<html>",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"status": "error", "error": "x"}',
        answer(kind="matrix"),
        answer(kind="scalar"),
        b'{"data": {"resultType": "vector", "result": [{"metric": 5}]}}',
        b"[" * 5000,
        b'{"data": {"resultType": "vector", "resultType ": ' + b"[" * 100_000,
    ],
)
def test_rubbish_is_said_to_be_rubbish(text: bytes) -> None:
    with pytest.raises(AnswerError):
        read(text, STALE)


def test_series_are_held_against_nodes() -> None:
    found = read(
        answer(
            sample("a", "0.5"),
            sample("b", "NaN"),
            sample("elsewhere", "42"),
            sample("c.example.com", "0.5"),
            sample("d:9100", "0.5"),
            sample("stranger", "0.5"),
            sample("", "0.5"),
        ),
        STALE,
    )
    wrong = compare(
        found, {"a", "b", "c", "d", "e", "f.example.com"}, {"a", "b", "c", "d", "e", "f.example.com", "elsewhere"}
    )
    assert wrong == [
        Rejected("b", Reason.NOT_FINITE, "NaN"),
        Rejected("", Reason.NO_NODE, "0.5"),
        Rejected("c.example.com", Reason.UNKNOWN_NODE),
        Rejected("d:9100", Reason.UNKNOWN_NODE),
        Rejected("stranger", Reason.UNKNOWN_NODE),
        Rejected("c", Reason.MISSING, "there is a series named c.example.com"),
        Rejected("d", Reason.MISSING, "there is a series named d:9100"),
        Rejected("e", Reason.MISSING),
        Rejected("f.example.com", Reason.MISSING),
    ]
    assert dict(counts(wrong)) == {"missing": 4, "no_node": 1, "not_finite": 1, "unknown_node": 3}


def test_a_domain_may_be_on_either_side() -> None:
    found = read(answer(sample("f", "0.5")), STALE)
    [_, missing] = compare(found, {"f.example.com"}, {"f.example.com"})
    assert missing.value == "there is a series named f"


def test_the_query_may_end_in_a_comment() -> None:
    assert "load # per node\n)" in expression("load # per node")


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode()))
def test_no_answer_crashes_it(text: bytes) -> None:
    with suppress(AnswerError):
        read(text, STALE)


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_no_text_in_a_series_crashes_it(node: str, value: str, time: str) -> None:
    read(answer([series(node, value), series(node, time, "timestamp")]), STALE)


def test_unknown_nodes_are_told_up_to_a_number_and_counted_beyond() -> None:
    found = Samples({f"unknown-{number:05}": 50 for number in range(10_000)})
    wrong = compare(found, {"a"}, {"a"})
    assert len(wrong) == 1002
    assert wrong[1000] == Rejected("", Reason.UNKNOWN_NODE, "9000 more", 9000)
    assert dict(counts(wrong)) == {"missing": 1, "unknown_node": 10_000}


def test_names_of_many_parts_take_no_more_than_their_size() -> None:
    names = [f"{number}" + ".a" * 2_000 for number in range(10)]
    tracemalloc.start()
    compare(Samples(dict.fromkeys(names, 50)), {"a"}, {"a"})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**20


LONG = "x" * 5000


def test_foreign_texts_are_cut() -> None:
    found = read(
        answer(sample("a", LONG), *[sample("b", "0.5" + "0" * 90, copy=str(copy)) for copy in range(9)]), STALE
    )
    assert [len(one.value) for one in found.rejected] == [200, 200]
    assert [len(one.node) for one in compare(Samples({LONG: 50}), set(), set())] == [200]
    with pytest.raises(AnswerError) as caught:
        read(answer(kind=LONG), STALE)
    assert len(str(caught.value)) < 250


def test_a_long_number_is_one() -> None:
    assert read(answer(sample("a", "0.5" + "0" * 500)), STALE).points == {"a": 50}
