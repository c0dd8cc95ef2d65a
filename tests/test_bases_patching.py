"""The operations that bring wanted fields onto an object, and how they are applied."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer import model
from renderer.bases import FieldError, Inapplicable, apply, operations, pointer
from renderer.model import Body

EXISTING: Body = {
    "metadata": {"annotations": {"a/b": "1"}, "labels": None},
    "spec": {"a": {"b": 1}, "list": [1], "none": None, "text": "x"},
}
OPERATIONS: list[tuple[str, list[tuple[model.Path, Any]], list[tuple[str, str, Any]]]] = [
    ("a field that is there", [(("spec", "a", "b"), 2)], [("replace", "/spec/a/b", 2)]),
    ("an equal field", [(("spec", "a", "b"), 1)], [("replace", "/spec/a/b", 1)]),
    ("a new field", [(("spec", "a", "c"), 2)], [("add", "/spec/a/c", 2)]),
    ("null", [(("spec", "none"), 2)], [("replace", "/spec/none", 2)]),
    ("a missing parent", [(("spec", "x", "y", "z"), 1)], [("add", "/spec/x", {"y": {"z": 1}})]),
    ("below null", [(("metadata", "labels", "a"), "b")], [("add", "/metadata/labels", {"a": "b"})]),
    (
        "two below one missing parent",
        [(("spec", "x", "z"), 1), (("spec", "x", "y", "w"), 2)],
        [("add", "/spec/x", {"y": {"w": 2}, "z": 1})],
    ),
    (
        "the order of paths",
        [(("spec", "c"), 1), (("metadata", "annotations", "z"), "2"), (("spec", "b"), 3)],
        [("add", "/metadata/annotations/z", "2"), ("add", "/spec/b", 3), ("add", "/spec/c", 1)],
    ),
    (
        "escapes",
        [(("metadata", "annotations", "a/b"), "2"), (("metadata", "annotations", "c~/d"), "3")],
        [("replace", "/metadata/annotations/a~1b", "2"), ("add", "/metadata/annotations/c~0~1d", "3")],
    ),
    (
        "appended",
        [(("spec", "list", "-"), 2), (("spec", "list", "-"), 3)],
        [("add", "/spec/list/-", 2), ("add", "/spec/list/-", 3)],
    ),
    (
        "appended to nothing",
        [(("spec", "x", "l", "-"), 2), (("spec", "x", "l", "-"), 3)],
        [("add", "/spec/x", {"l": [2, 3]})],
    ),
    ("appended to null", [(("spec", "none", "-"), 2)], [("add", "/spec/none", [2])]),
    (
        "an item",
        [(("spec", "list", 0), 2), (("spec", "list", 1), 3)],
        [("replace", "/spec/list/0", 2), ("add", "/spec/list/1", 3)],
    ),
    ("nothing", [], []),
]


@pytest.mark.parametrize(("fields", "expected"), [row[1:] for row in OPERATIONS], ids=[row[0] for row in OPERATIONS])
def test_operations(fields: list[tuple[model.Path, Any]], expected: list[tuple[str, str, Any]]) -> None:
    found = operations(EXISTING, fields)
    assert found == [{"op": op, "path": path, "value": value} for op, path, value in expected]
    apply(EXISTING, found)


@pytest.mark.parametrize(
    "path", [("spec", "text", "x"), ("spec", "list", "x"), ("spec", "a", "-"), ("spec", "a", "b", "c")]
)
def test_a_parent_that_cannot_hold_the_field(path: model.Path) -> None:
    with pytest.raises(FieldError) as caught:
        operations(EXISTING, [(path, 1)])
    assert caught.value.path == path[:-1]


KEYS = st.sampled_from(["a", "b", "c/d", "e~f"])
LEAVES = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"])
VALUES = st.recursive(
    LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=2), max_leaves=8
)
BODIES = st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3), max_size=3)
PATHS = st.lists(KEYS, min_size=1, max_size=4).map(tuple)


def free(paths: list[model.Path]) -> bool:
    """No path lies on or below another one."""
    return not any(one == other[: len(one)] for i, one in enumerate(paths) for j, other in enumerate(paths) if i != j)


@given(BODIES, st.lists(st.tuples(PATHS, VALUES), max_size=4).filter(lambda fields: free([path for path, _ in fields])))
def test_operations_bring_the_fields_and_nothing_else(body: Body, fields: list[tuple[model.Path, Any]]) -> None:
    try:
        patch = operations(body, fields)
    except FieldError:
        return
    assert [one["path"] for one in patch] == sorted((one["path"] for one in patch), key=lambda path: path.split("/"))
    before = flat(body)
    after = flat(apply(body, patch))
    assert flat(body) == before
    assert operations(body, list(reversed(fields))) == patch
    for path, value in fields:
        for below, leaf in flat(value).items():
            assert after.pop(pointer(path) + below) == leaf
    ours = [pointer(path) for path, _ in fields]
    kept = {where: leaf for where, leaf in before.items() if not any(lies(where, mine) for mine in ours)}
    assert after == kept


def lies(where: str, mine: str) -> bool:
    """Whether a field of the object is ours, or an empty or missing parent that ours has filled."""
    return where == mine or where.startswith(f"{mine}/") or mine.startswith(f"{where}/") or where == ""


def flat(value: Any, where: str = "") -> dict[str, Any]:
    children: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    if not children:
        return {where: value}
    return {at: leaf for key, child in children for at, leaf in flat(child, where + pointer((key,))).items()}


HARMFUL: list[tuple[str, Any]] = [
    ("the whole document", {"op": "replace", "path": "", "value": {}}),
    ("no slash", {"op": "add", "path": "spec", "value": 1}),
    ("an unknown operation", {"op": "merge", "path": "/spec", "value": 1}),
    ("no value", {"op": "add", "path": "/spec"}),
    ("no operation", "add"),
    ("no path", {"op": "add"}),
    ("a scalar as parent", {"op": "add", "path": "/spec/text/x", "value": 1}),
    ("beyond the end", {"op": "add", "path": "/spec/list/7", "value": 1}),
    ("no number", {"op": "remove", "path": "/spec/list/x"}),
    ("from is missing", {"op": "move", "path": "/spec/x"}),
    ("far too deep", {"op": "add", "path": "/a" * 100, "value": 1}),
]


@pytest.mark.parametrize("operation", [row[1] for row in HARMFUL], ids=[row[0] for row in HARMFUL])
def test_inapplicable(operation: Any) -> None:
    with pytest.raises(Inapplicable):
        apply(EXISTING, [operation])


def test_copies_of_copies_stay_bounded() -> None:
    with pytest.raises(Inapplicable, match="too large or too deep"):
        apply({"spec": {}}, [{"op": "copy", "from": "/spec", "path": f"/spec/x{i}"} for i in range(60)])


OPS = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])},
    optional={
        "path": st.lists(KEYS | st.sampled_from(["-", "0", "1", ""])).map(lambda steps: pointer(tuple(steps))),
        "from": PATHS.map(pointer),
        "value": VALUES,
    },
)


@given(BODIES, st.lists(OPS, max_size=5))
def test_apply_never_changes_what_it_is_given(body: Body, patch: list[Any]) -> None:
    before, given_patch = flat(body), flat(patch)
    with contextlib.suppress(Inapplicable):
        apply(body, patch)
    assert (flat(body), flat(patch)) == (before, given_patch)
