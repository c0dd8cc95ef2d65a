"""The comparison of what was built with what was rendered, as tables: what passes, and what each fault is called."""

from typing import Any

import pytest

from renderer import proof
from renderer.kinds.base import OperatorObject
from renderer.model import Body, Overlay
from renderer.model import Path as FieldPath

OPERATOR = OperatorObject("overlay", "hco.kubevirt.io/v1", "HyperConverged", "hco", "cnv", "base")
A, TEXT, ITEM = ("spec", "a"), ("spec", "a", "b"), ("spec", "l", "-")
NONE: list[tuple[FieldPath, Any]] = []


def body(spec: Any = None, *, namespace: str = "cnv", name: str = "hco", kind: str = "HyperConverged") -> Body:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "hco.kubevirt.io/v1", "kind": kind, "metadata": metadata, "spec": spec or {}}


def found(before: list[Body], after: list[Body], *intent: tuple[FieldPath, Any]) -> list[str]:
    one, other = ({proof.key(item): item for item in items} for items in (before, after))
    return [item.message for item in proof.patched(one, other, OPERATOR, Overlay({}, intent))]


PASSES: dict[str, tuple[Any, Any, list[tuple[FieldPath, Any]]]] = {
    "nothing intended, nothing changed": ({"x": 1}, {"x": 1}, []),
    "a new field": ({}, {"a": "x"}, [(A, "x")]),
    "a new field and its parents": ({}, {"a": {"b": "x"}}, [(TEXT, "x")]),
    "a parent that was null": ({"a": None}, {"a": {"b": "x"}}, [(TEXT, "x")]),
    "another value": ({"a": {"b": "y", "c": 1}}, {"a": {"b": "x", "c": 1}}, [(TEXT, "x")]),
    "a value that was there": ({"a": {"b": "x"}}, {"a": {"b": "x"}}, [(TEXT, "x")]),
    "an item": ({"l": [1]}, {"l": [1, 2]}, [(ITEM, 2)]),
    "an item of a new list": ({}, {"l": [2]}, [(ITEM, 2)]),
    "two items": ({"l": [1]}, {"l": [1, 2, 3]}, [(ITEM, 2), (ITEM, 3)]),
    "an item after which the base appends": ({"l": [1, 9]}, {"l": [1, 2, 9]}, [(ITEM, 2)]),
}


@pytest.mark.parametrize("case", PASSES.values(), ids=list(PASSES))
def test_as_intended(case: tuple[Any, Any, list[tuple[FieldPath, Any]]]) -> None:
    before, after, intent = case
    assert found([body(before)], [body(after)], *intent) == []


FAILS: dict[str, tuple[Any, Any, list[tuple[FieldPath, Any]], str]] = {
    "a field that was not asked for": ({}, {"z": 1}, NONE, "also changes spec.z of HyperConverged cnv/hco from absent"),
    "a field that is gone": ({"z": 1}, {}, NONE, "also changes spec.z of HyperConverged cnv/hco from 1 to absent"),
    "a sibling that is gone": (
        {"a": {"c": 1}},
        {"a": {"b": "x"}},
        [(TEXT, "x")],
        "also changes spec.a.c of HyperConverged cnv/hco from 1 to absent",
    ),
    "a missing value": ({}, {}, [(A, "x")], 'spec.a of HyperConverged cnv/hco is absent after the build, not "x"'),
    "another value": ({}, {"a": "y"}, [(A, "x")], 'spec.a of HyperConverged cnv/hco is "y" after the build'),
    "another type": ({}, {"a": "1"}, [(A, 1)], 'is "1" after the build, not 1'),
    "a boolean for a number": ({}, {"a": True}, [(A, 1)], "is true after the build, not 1"),
    "an item that is missing": ({"l": [1]}, {"l": [1]}, [(ITEM, 2)], "is [1] after the build, not [1, 2]"),
    "an item twice": ({"l": [1]}, {"l": [1, 2, 2]}, [(ITEM, 2)], "is [1, 2, 2] after the build"),
    "an item in place of others": ({"l": [1]}, {"l": [2]}, [(ITEM, 2)], "is [2] after the build, not [2, 1]"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILS.values(), ids=list(FAILS))
def test_not_as_intended(case: tuple[Any, Any, list[tuple[FieldPath, Any]], str]) -> None:
    before, after, intent, words = case
    (message,) = found([body(before)], [body(after)], *intent)
    assert words in message


def test_other_objects() -> None:
    other, changed = body({"x": 1}, name="other"), body({"x": 2}, name="other")
    assert found([body(), other], [body(), other]) == []
    assert found([body(), other], [body()]) == ["the patch takes away HyperConverged cnv/other"]
    assert found([body()], [body(), other]) == ["the patch brings HyperConverged cnv/other"]
    assert found([body(), other], [body(), changed]) == [
        "the patch changes spec.x of HyperConverged cnv/other from 1 to 2"
    ]
    assert found([], []) == ["the build does not give HyperConverged cnv/hco"]


def test_object_without_namespace_is_the_operator_object() -> None:
    before, after = body(namespace=""), body({"a": "x"}, namespace="")
    assert found([before], [after], (A, "x")) == []


def test_built_objects_are_read_one_by_one() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata: {name: a}\ndata: |\n  ---\n  x\n---\napiVersion: v1\nkind: B\n"
    objects = proof.Reader().objects(text)
    assert list(objects) == [("v1", "A", "", "a"), ("v1", "B", "", "")]
    assert objects["v1", "A", "", "a"]["data"] == "---\nx\n"
    assert proof.Reader().objects("") == proof.Reader().objects("\n") == {}


@pytest.mark.parametrize("text", ["a: b: c", "- a\n", "kind: A\n---\nkind: A\n"])
def test_what_is_no_list_of_objects(text: str) -> None:
    with pytest.raises(proof.Unreadable):
        proof.Reader().objects(text)
