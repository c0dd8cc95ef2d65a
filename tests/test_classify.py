"""The classification of nodes, held against worked examples of the descheduler's arithmetic."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer.softtaint.classify import Node, SampleError, Thresholds, ambiguous, classify, measure, percent, taints


def static(low: int, high: int) -> Thresholds:
    return Thresholds(low, high, deviation=False)


def deviation(low: int, high: int) -> Thresholds:
    return Thresholds(low, high, deviation=True)


# Samples, cordoned nodes by index, thresholds, classes, taints.
VECTORS = [
    ([0.20, 0.21, 0.50, 0.51], (), static(20, 50), [0, 1, 1, 2], [0, 1, 1, 2]),
    ([0.10, 0.50, 0.90], (), deviation(10, 10), [0, 1, 2], [0, 1, 2]),
    ([0.10, 0.10, 0.10], (), deviation(0, 20), [0, 0, 0], [0, 0, 0]),
    ([0.10, 0.10, 0.10], (), deviation(10, 10), [1, 1, 1], [0, 0, 0]),
    ([0.90, 0.90, 0.90], (), deviation(10, 10), [1, 1, 1], [0, 0, 0]),
    ([0.30, 0.40, 0.40, 0.50], (), deviation(0, 10), [0, 0, 0, 1], [0, 0, 0, 1]),
    ([0.30, 0.40, 0.40, 0.51], (), deviation(0, 10), [0, 0, 0, 2], [0, 0, 0, 2]),
    ([0.05, 0.05, 0.35], (), deviation(20, 20), [1, 1, 1], [0, 0, 0]),
    ([0.85, 0.95, 0.99], (), deviation(10, 10), [1, 1, 1], [0, 0, 0]),
    ([0.30, 0.45, 0.80], (), static(20, 50), [1, 1, 2], [0, 0, 2]),
    ([0.10, 0.30, 0.80], (0,), static(20, 50), [1, 1, 2], [0, 0, 2]),
    ([0.10, 0.30, 0.80], (), static(20, 50), [0, 1, 2], [0, 1, 2]),
    ([0.10, 0.30, 0.80], (2,), static(20, 50), [0, 1, 2], [0, 1, 2]),
    ([0.29, 0.58, 0.209999], (), static(20, 50), [1, 2, 0], [1, 2, 0]),
    ([0.30, 0.31], (), static(30, 30), [0, 2], [0, 2]),
    ([0.60, 0.70, 0.80], (), static(20, 50), [2, 2, 2], [2, 2, 2]),
    ([0.0, 1.0], (), static(0, 100), [0, 1], [0, 1]),
    ([0.0, 1.0], (), deviation(30, 30), [0, 2], [0, 2]),
]


@pytest.mark.parametrize(("samples", "cordoned", "thresholds", "classes", "wanted"), VECTORS)
def test_vectors(
    samples: list[float], cordoned: tuple[int, ...], thresholds: Thresholds, classes: list[int], wanted: list[int]
) -> None:
    nodes = [Node(str(index), percent(sample), index in cordoned) for index, sample in enumerate(samples)]
    found = classify(nodes, thresholds)
    assert [int(usage) for usage in found.values()] == classes
    assert list(taints(found).values()) == wanted


@pytest.mark.parametrize(
    ("sample", "points"), [(0.29, 28), (0.57, 56), (0.58, 57), (0.209999, 20), (0.0, 0), (1.0, 100)]
)
def test_samples_are_cut_off(sample: float, points: int) -> None:
    assert percent(sample) == points


@pytest.mark.parametrize("sample", [1.01, 1.0000001, -0.0001, 42.0, math.nan, math.inf, -math.inf])
def test_what_is_no_ratio_is_refused(sample: float) -> None:
    with pytest.raises(SampleError, match="not within"):
        percent(sample)


def test_a_node_without_a_sample_stops_the_pass() -> None:
    with pytest.raises(SampleError, match="node b"):
        measure(["a", "b"], {"a": 0.5, "c": 0.5})
    assert measure(["a"], {"a": 0.5, "c": 0.5}) == {"a": 50}


def test_a_value_of_an_unlisted_node_also_stops_the_pass() -> None:
    with pytest.raises(SampleError, match="not within"):
        measure(["a"], {"a": 0.5, "c": 1.5})


def test_ties_that_floating_point_decides_at_random_are_named() -> None:
    nodes = [Node(str(points), points) for points in (10, 56, 18, 28)]
    assert ambiguous(nodes, deviation(0, 10)) == ["28"]
    assert ambiguous(nodes, static(28, 50)) == []
    assert ambiguous([Node("a", 30), Node("b", 30)], deviation(0, 10)) == []


percents = st.lists(st.integers(0, 100), min_size=1, max_size=40)
bounds = st.builds(Thresholds, st.integers(0, 100), st.integers(0, 100), st.booleans())


@given(percents, bounds)
def test_order_does_not_matter(points: list[int], thresholds: Thresholds) -> None:
    nodes = [Node(str(index), value) for index, value in enumerate(points)]
    assert classify(nodes, thresholds) == classify(reversed(nodes), thresholds)


@given(percents, bounds)
def test_more_load_never_means_a_lower_class(points: list[int], thresholds: Thresholds) -> None:
    nodes = [Node(str(index), value) for index, value in enumerate(sorted(points))]
    classes = list(classify(nodes, thresholds).values())
    if thresholds.deviation or thresholds.low <= thresholds.high:
        assert classes == sorted(classes)
