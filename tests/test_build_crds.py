"""What the validation against CustomResourceDefinitions accepts and refuses, rule by rule."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from renderer import crds
from renderer.tree import DiskTree

METADATA = {"name": "x", "namespace": "y", "annotations": {"a": "b"}}


def definition(spec: dict[str, Any], **root: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}, **root}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    old = {"name": "v1alpha1", "served": False, "storage": False, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Thing", "plural": "things"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "names": names, "versions": [version, old]},
    }


def read(root: Path, *documents: Any, path: str = "") -> crds.Definitions:
    root.mkdir(exist_ok=True)
    (root / "things.yaml").write_text(yaml.safe_dump_all(documents))
    exported = crds.read(DiskTree(root), path)
    assert exported.unusable == []
    return exported.definitions


def unusable(root: Path, path: str = "") -> str:
    (only,) = crds.read(DiskTree(root), path).unusable
    return only


def faults(root: Path, schema: dict[str, Any], spec: Any, **more: Any) -> list[crds.Fault]:
    found = read(root, definition(schema))["example.org", "Thing"]
    body = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": METADATA, "spec": spec, **more}
    return list(found.faults(body))


OBJECT: dict[str, Any] = {"type": "object"}
NAMED = {**OBJECT, "properties": {"qps": {"type": "number"}, "tuningPolicy": {"type": "string"}}}
EITHER_FIELD = [{"required": ["qps"]}, {"properties": {"tuningPolicy": {}}}]
SET = {"type": "array", "items": {}, "x-kubernetes-list-type": "set"}
ANY = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {**OBJECT, **ANY, "x-kubernetes-embedded-resource": True}
EITHER = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
ACCEPTED: dict[str, tuple[dict[str, Any], Any]] = {
    "known fields": (NAMED, {"qps": 1.5, "tuningPolicy": "a"}),
    "any field where unknown ones are kept": ({**NAMED, **ANY}, {"other": {"deep": 1}}),
    "any key of a map": ({**OBJECT, "additionalProperties": {"type": "string"}}, {"k": "v"}),
    "null where it may be": ({**OBJECT, "properties": {"a": {**OBJECT, "nullable": True}}}, {"a": None}),
    "a number for int-or-string": ({**OBJECT, "properties": {"a": EITHER}}, {"a": 1}),
    "a text for int-or-string": ({**OBJECT, "properties": {"a": EITHER}}, {"a": "50%"}),
    "an embedded object": ({**OBJECT, "properties": {"a": EMBEDDED}}, {"a": {"apiVersion": "v1", "kind": "A", "x": 1}}),
    "a required field with a default": (
        {**OBJECT, "required": ["a"], "properties": {"a": {"type": "string", "default": "x"}}},
        {},
    ),
    "fields under anyOf": ({**NAMED, "anyOf": EITHER_FIELD}, {"qps": 1}),
    "a rule in CEL, which is not evaluated": ({**NAMED, "x-kubernetes-validations": [{"rule": "false"}]}, {"qps": 1}),
    "the bound itself": ({**OBJECT, "properties": {"a": {"type": "integer", "minimum": 1}}}, {"a": 1}),
}  # fmt: skip
REFUSED: dict[str, tuple[dict[str, Any], Any, str]] = {
    "an unknown field": (NAMED, {"burst": 1}, "spec.burst is not a field"),
    "any field of an empty object": (OBJECT, {"a": 1}, "spec.a is not a field"),
    "an unknown field of an item": (
        *({**OBJECT, "properties": {"l": {"type": "array", "items": NAMED}}}, {"l": [{}, {"x": 1}]}),
        "spec.l[1].x is not a field",
    ),
    "an unknown field below a map": ({**OBJECT, "additionalProperties": NAMED}, {"k": {"x": 1}}, "spec.k.x is not"),
    "an unknown field below what keeps them": (
        *({**OBJECT, **ANY, "properties": {"a": NAMED}}, {"a": {"x": 1}}),
        "spec.a.x is not a field",
    ),
    "another type": (NAMED, {"qps": "1"}, 'spec.qps: "1" is not of type'),
    "a fraction": ({**OBJECT, "properties": {"a": {"type": "integer"}}}, {"a": 1.5}, "spec.a: 1.5 is not"),
    "null": (NAMED, {"qps": None}, "spec.qps: null is not of type"),
    "a value that is not listed": (
        *({**OBJECT, "properties": {"a": {"type": "string", "enum": ["x"]}}}, {"a": "y"}),
        'spec.a: "y" is not',
    ),
    "a required field": ({**NAMED, "required": ["qps"]}, {}, 'spec: "qps" is a required property'),
    "below the bound": (
        *({**OBJECT, "properties": {"a": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}}, {"a": 0}),
        "spec.a: 0 is less than or equal to the minimum",
    ),
    "more than 32 bits": (
        *({**OBJECT, "properties": {"a": {"type": "integer", "format": "int32"}}}, {"a": 2**31}),
        "spec.a: 2147483648 is greater than the maximum",
    ),
    "a set with equal items": (
        *({**OBJECT, "properties": {"a": SET}}, {"a": [1, 1]}),
        "spec.a: [1,1] has non-unique elements",
    ),
    "an embedded object without a kind": (
        *({**OBJECT, "properties": {"a": EMBEDDED}}, {"a": {"apiVersion": "v1"}}),
        'spec.a: "kind" is a required property',
    ),
    "neither integer nor text": ({**OBJECT, "properties": {"a": EITHER}}, {"a": True}, "spec.a: true is not of types"),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=list(ACCEPTED))
def test_accepted(case: tuple[dict[str, Any], Any], tmp_path: Path) -> None:
    assert faults(tmp_path, *case) == []


@pytest.mark.parametrize("case", REFUSED.values(), ids=list(REFUSED))
def test_refused(case: tuple[dict[str, Any], Any, str], tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, *case[:2])
    assert case[2] in fault.message
    assert fault.help


def test_nearest_known_field(tmp_path: Path) -> None:
    (near,) = faults(tmp_path, NAMED, {"tuningpolicy": "annotation"})
    assert (near.path, near.help) == (("spec", "tuningpolicy"), "The nearest known field is tuningPolicy.")
    (far,) = faults(tmp_path, NAMED, {"zzz": 1})
    assert far.help == "Known there: qps, tuningPolicy."
    (none,) = faults(tmp_path, OBJECT, {"zzz": 1})
    assert none.help == "No fields are known there."


def test_metadata_is_known_by_itself(tmp_path: Path) -> None:
    assert [fault.message.split(" is")[0] for fault in faults(tmp_path, NAMED, {}, metadata={"nam": "x"})] == [
        "metadata.nam"
    ]
    assert len(faults(tmp_path, NAMED, {}, metadata={"annotations": {"a": 1}})) == 1
    assert [fault.path for fault in faults(tmp_path, NAMED, {}, other=1)] == [("other",)]


def test_metadata_can_be_narrowed(tmp_path: Path) -> None:
    found = definition(NAMED)
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["metadata"] = {"type": "object", "properties": {"name": {"type": "string", "pattern": "hco"}}}
    one = read(tmp_path, found)["example.org", "Thing"]
    body = {"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}}
    assert [fault.path for fault in one.faults(body)] == [("metadata", "name")]
    assert list(one.faults({**body, "metadata": {"name": "the-hco", "labels": {}}})) == []


def test_version_that_is_not_served(tmp_path: Path) -> None:
    one = read(tmp_path, definition(NAMED))["example.org", "Thing"]
    for version in ("v1alpha1", "v2"):
        (fault,) = one.faults({"apiVersion": f"example.org/{version}", "kind": "Thing"})
        assert f"example.org/{version} is not served" in fault.message
        assert "serves example.org/v1" in fault.message


def test_file_folder_and_list(tmp_path: Path) -> None:
    bare = {key: value for key, value in definition(NAMED).items() if key not in ("apiVersion", "kind")}
    for listed in (
        {"apiVersion": "v1", "kind": "List", "items": [definition(NAMED)]},
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinitionList", "items": [bare]},
    ):
        for path in ("", "things.yaml"):
            assert list(read(tmp_path, listed, path=path)) == [("example.org", "Thing")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no CustomResourceDefinition"),
        ("kind: ConfigMap\n", "holds no CustomResourceDefinition"),
        ("kind: CustomResourceDefinition\nspec: {}\n", "without group, kind, versions or schema"),
        ("kind: CustomResourceDefinition\nspec: 3\n", "without group, kind, versions or schema"),
        ("a: b: c\n", "things.yaml:1: not valid YAML"),
    ],
)
def test_unreadable(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "things.yaml").write_text(text)
    assert words in unusable(tmp_path)


def test_missing(tmp_path: Path) -> None:
    assert unusable(tmp_path, "nowhere") == "nowhere: no such file"


def test_two_definitions_of_one_kind(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(definition(OBJECT)))
    (tmp_path / "things.yaml").write_text(yaml.safe_dump(definition(NAMED)))
    assert unusable(tmp_path) == "things.yaml: Thing of example.org is defined more than once: keep one release"


def test_equal_contents_are_parsed_once(tmp_path: Path) -> None:
    found = [read(tmp_path / name, definition(NAMED))["example.org", "Thing"] for name in ("one", "two")]
    assert found[0] is found[1]


def test_files_without_the_name_are_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("kind: CustomResourceDefinition\na: b: c\n")
    (tmp_path / "things.yaml").write_text(yaml.safe_dump(definition(NAMED)))
    found = crds.read(DiskTree(tmp_path), "", "things.example.org")
    assert (list(found.definitions), found.unusable) == ([("example.org", "Thing")], [])


def test_what_cannot_be_used_does_not_hide_the_rest(tmp_path: Path) -> None:
    read(tmp_path, definition(NAMED))
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate((16 << 20) + 1)
    found = crds.read(DiskTree(tmp_path), "")
    assert list(found.definitions) == [("example.org", "Thing")]
    assert found.unusable == ["large.yaml: the file has 16777217 bytes; at most 16777216 are read"]
