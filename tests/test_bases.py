"""Bases read statically: what is found, and what is said about those that cannot be followed."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer.bases import Base, BaseProblem, BaseReader, Wanted, apply, operations
from renderer.model import Position
from renderer.tree.disk import DiskTree

WANTED = Wanted("hco.kubevirt.io/v1beta1", "HyperConverged", "kubevirt-hyperconverged", "openshift-cnv")
OURS = "overlays/prod/operator"
RES = "resources: [hco.yaml]\n"
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
HCO = """\
apiVersion: hco.kubevirt.io/v1beta1
kind: HyperConverged
metadata:
  name: kubevirt-hyperconverged
  namespace: openshift-cnv
"""
PATCH = """\
resources: [hco.yaml]
patches:
- target: {target}
  patch: |
    - {{op: add, path: /spec, value: {{}}}}
"""


def grow(root: Path, files: Mapping[str, str]) -> DiskTree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return DiskTree(root)


def base(kustomization: str = RES, hco: str = HCO, **files: str) -> dict[str, str]:
    """A tree with a base; further files are named with __ for / and end in .yaml."""
    more = {f"{name.replace('__', '/')}.yaml": text for name, text in files.items()}
    return {"base/kustomization.yaml": kustomization, "base/hco.yaml": hco, **more}


def read(root: Path, files: Mapping[str, str], component: str | None = None, at: str = "base") -> Base:
    found = BaseReader(grow(root, files)).read(at, WANTED, component)
    assert isinstance(found, Base), found
    return found


def problems(
    root: Path, files: Mapping[str, str], component: str | None = None, at: str = "base", wanted: Wanted = WANTED
) -> list[BaseProblem]:
    found = BaseReader(grow(root, files)).read(at, wanted, component)
    assert isinstance(found, list), found
    return found


def placed(problem: BaseProblem) -> str:
    if problem.origin is None:
        return "-"
    at = problem.origin.position
    return f"{at.file}:{at.line}:{at.column}"


TABLE: list[tuple[str, dict[str, str], str, str, str]] = [
    # What is wrong, the tree, the code, the place, a part of the message.
    (
        "a file that is missing",
        base("resources:\n- gone.yaml\n"),
        "base/missing",
        "base/kustomization.yaml:2:3",
        "gone.yaml does not",
    ),
    (
        "a folder without a kustomization",
        base("resources: [../s]\n", s__x="a: b\n"),
        "base/missing",
        "base/kustomization.yaml:1:13",
        "s has no kustomization.yaml",
    ),
    (
        "a resource outside",
        base("resources: [../../x.yaml]\n"),
        "base/outside",
        "base/kustomization.yaml:1:13",
        "outside the repository",
    ),
    (
        "an absolute resource",
        base("resources: [/etc/x.yaml]\n"),
        "base/outside",
        "base/kustomization.yaml:1:13",
        "/etc/x.yaml",
    ),
    ("a Windows path", base("resources: ['C:\\x.yaml']\n"), "base/outside", "base/kustomization.yaml:1:13", "outside"),
    ("broken YAML", base(hco=HCO + "spec: [\n"), "base/unreadable", "base/hco.yaml:6:8", "not valid YAML"),
    ("a key twice", base(hco=HCO + "kind: KubeVirt\n"), "base/unreadable", "base/hco.yaml:6:1", "stands twice"),
    (
        "an unknown field",
        base(RES + "resource: []\n"),
        "base/unreadable",
        "base/kustomization.yaml:2:1",
        "no field resource",
    ),
    (
        "a cycle",
        base("resources: [../s]\n", s__kustomization="resources:\n- ../base\n"),
        "base/unreadable",
        "s/kustomization.yaml:2:3",
        "cycle",
    ),
    (
        "replacements",
        base(RES + "replacements: [{path: r.yaml}]\n"),
        "base/unreadable",
        "base/kustomization.yaml:2:1",
        "replacements may change",
    ),
    ("vars", base(RES + "vars: [{name: A}]\n"), "base/unreadable", "base/kustomization.yaml:2:1", "vars may change"),
    (
        "transformers",
        base(RES + "transformers: [t.yaml]\n"),
        "base/unreadable",
        "base/kustomization.yaml:2:1",
        "transformers may change",
    ),
    (
        "openapi",
        base(RES + "openapi: {path: o.json}\n"),
        "base/unreadable",
        "base/kustomization.yaml:2:1",
        "openapi may change",
    ),
    ("crds", base(RES + "crds: [c.json]\n"), "base/unreadable", "base/kustomization.yaml:2:1", "crds may change"),
    (
        "a chart and no object",
        base("helmCharts:\n- name: hco\n", hco="a: b"),
        "base/unreadable",
        "base/kustomization.yaml:1:1",
        "helmCharts may create",
    ),
    (
        "a generator and no object",
        base("generators: [g.yaml]\n"),
        "base/unreadable",
        "base/kustomization.yaml:1:1",
        "generators may create",
    ),
    (
        "a remote resource and no object",
        base("resources: ['https://x.example/hco.yaml']\n"),
        "base/unreadable",
        "base/kustomization.yaml:1:13",
        "https://x.example/hco.yaml is remote",
    ),
    (
        "a remote component",
        base(RES + "components: ['github.com/org/repo//c?ref=v1']\n"),
        "base/unreadable",
        "base/kustomization.yaml:2:14",
        "is remote",
    ),
    (
        "a remote patch",
        base(RES + "patches: [{path: 'https://x.example/p.yaml'}]\n"),
        "base/unreadable",
        "base/kustomization.yaml:2:18",
        "only kustomize can fetch it",
    ),
    (
        "a patch that does not apply",
        base(
            RES + "patches:\n- {path: p.yaml, target: {kind: Hyper.*}}\n",
            base__p="# two\n- {op: add, path: /spec, value: {}}\n- {op: remove, path: /spec/x}\n",
        ),
        "base/unreadable",
        "base/p.yaml:3:3",
        "operation 2 of this patch does not apply",
    ),
    (
        "a directive in a patch file",
        base(RES + "patches: [path: p.yaml]\n", base__p=HCO + "spec:\n  a:\n    $patch: delete\n"),
        "base/unreadable",
        "base/p.yaml:8:5",
        "$patch",
    ),
    (
        "a label selector",
        base(PATCH.format(target="{labelSelector: a=b}")),
        "base/unreadable",
        "base/kustomization.yaml:3:27",
        "labelSelector",
    ),
    (
        "an annotation selector",
        base(PATCH.format(target="{annotationSelector: a=b}")),
        "base/unreadable",
        "base/kustomization.yaml:3:32",
        "annotationSelector",
    ),
    (
        "a pattern that is not tried",
        base(PATCH.format(target="{name: (k+)+}")),
        "base/unreadable",
        "base/kustomization.yaml:3:18",
        "the pattern (k+)+",
    ),
    (
        "a patch without the namespace",
        base(RES + "patches: [path: p.yaml]\n", base__p=HCO.replace("openshift-cnv", "other")),
        "base/unreadable",
        "base/p.yaml:1:1",
        "finds nothing to patch",
    ),
    (
        "another name",
        base(hco=HCO.replace("kubevirt-hyper", "hyper")),
        "base/no-match",
        "-",
        "but HyperConverged hyperconverged in namespace openshift-cnv (base/hco.yaml:1)",
    ),
    (
        "another version",
        base(hco=HCO.replace("v1beta1", "v1")),
        "base/no-match",
        "-",
        "is declared as hco.kubevirt.io/v1 in base/hco.yaml:1, not as hco.kubevirt.io/v1beta1",
    ),
    (
        "another kind",
        base(hco="apiVersion: kubevirt.io/v1\nkind: KubeVirt\nmetadata: {name: kubevirt}\n"),
        "base/no-match",
        "-",
        "but KubeVirt kubevirt without a namespace",
    ),
    (
        "a namespace that moves it",
        base(RES + "namespace: elsewhere\n"),
        "base/no-match",
        "-",
        "changed by namespace in base/kustomization.yaml:2",
    ),
    (
        "nothing",
        base(hco="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"),
        "base/no-match",
        "-",
        "no other operator object",
    ),
    (
        "the object twice",
        base("resources: [hco.yaml, b.yaml]\n", base__b=f"---\n---\n{HCO}"),
        "base/conflict",
        "base/b.yaml:3:1",
        "is declared here and in base/hco.yaml:1",
    ),
    (
        "two versions of the object",
        base("resources: [hco.yaml, b.yaml]\n", base__b=HCO.replace("v1beta1", "v1")),
        "base/conflict",
        "base/b.yaml:1:1",
        "is declared here and in base/hco.yaml:1",
    ),
]


@pytest.mark.parametrize(
    ("files", "code", "place", "message"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_problem(files: dict[str, str], code: str, place: str, message: str, tmp_path: Path) -> None:
    (found,) = problems(tmp_path, files)
    assert (found.code, placed(found)) == (code, place), found.message
    assert message in found.message
    assert found.help.endswith(".")


@pytest.mark.parametrize("at", ["/base", "../base", "base/../..", "C:\\base", "C:/base", "base\\x"])
def test_base_outside(at: str, tmp_path: Path) -> None:
    assert [(each.code, each.origin) for each in problems(tmp_path, base(), at=at)] == [("base/outside", None)]


@pytest.mark.parametrize("at", ["gone", "base/hco.yaml"])
def test_base_missing(at: str, tmp_path: Path) -> None:
    (found,) = problems(tmp_path, base(), at=at)
    assert found.code in ("base/missing", "base/unreadable")
    assert found.origin is None


def test_component_as_base_of_an_overlay(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, base(COMPONENT + RES))
    assert (found.code, found.message) == ("base/unreadable", "base is a Component")


def test_all_problems_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, base("resources: [gone.yaml, hco.yaml]\nnothing: 1\n", hco="a: [\n"))
    assert [each.code for each in found] == ["base/unreadable", "base/missing", "base/unreadable"]


def test_the_version_that_is_there_is_named(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, base(hco=HCO.replace("v1beta1", "v1")))
    assert found.help == "Set operatorResource.apiVersion to hco.kubevirt.io/v1."


def test_what_only_creates_is_no_matter_where_the_object_is_found(tmp_path: Path) -> None:
    files = base("resources: [hco.yaml, 'https://x.example/y.yaml']\nhelmCharts: [{name: x}]\ngenerators: [g.yaml]\n")
    assert read(tmp_path, files).body["kind"] == "HyperConverged"


def test_a_wrong_name_and_a_remote_resource_are_both_named(tmp_path: Path) -> None:
    found = problems(tmp_path, base("resources: [hco.yaml, 'https://x.example/y.yaml']\n", HCO.replace("-hyper", "-x")))
    assert [each.code for each in found] == ["base/no-match", "base/unreadable"]


def test_a_patch_of_something_else_need_not_be_readable(tmp_path: Path) -> None:
    files = base(RES + "patches: [{path: 'https://x.example/p.yaml', target: {kind: Deployment, name: (a+)+}}]\n")
    assert read(tmp_path, files).body["kind"] == "HyperConverged"


NOT_LISTED = {
    "not at all": base(),
    "another one": base(RES + "components: [../c]\n", c__kustomization=COMPONENT + "namePrefix: ''\n"),
    "where the object is not": base("resources: [hco.yaml, ../s]\n", s__kustomization=f"components: [../{OURS}]\n"),
}


@pytest.mark.parametrize("files", NOT_LISTED.values(), ids=NOT_LISTED)
def test_not_listed(files: dict[str, str], tmp_path: Path) -> None:
    (found,) = problems(tmp_path, files, OURS)
    assert (found.code, found.origin and found.origin.position.file) == ("base/not-listed", "base/kustomization.yaml")
    assert found.help == "Add to components: in base/kustomization.yaml:\n  - ../overlays/prod/operator"


def test_the_line_to_add_suffices(tmp_path: Path) -> None:
    files = {"a/b/kustomization.yaml": RES, "a/b/hco.yaml": HCO}
    (found,) = problems(tmp_path, files, OURS, at="a/b")
    (tmp_path / "a/b/kustomization.yaml").write_text(RES + "components:\n" + found.help.split("\n")[1] + "\n")
    assert isinstance(BaseReader(DiskTree(tmp_path)).read("a/b", WANTED, OURS), Base)


def test_listed_as_a_resource(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, base(f"resources: [hco.yaml, ../{OURS}]\n"), OURS)
    assert (found.code, found.help) == ("base/not-listed", "List it under components: instead.")


def test_listed_twice(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, base(f"{RES}components: [../{OURS}, ../overlays/../{OURS}]\n"), OURS)
    assert (found.code, placed(found)) == ("base/conflict", "base/kustomization.yaml:2:41")


def test_the_moment_of_our_component(tmp_path: Path) -> None:
    files = base(
        "resources: [../s]\nnamespace: openshift-cnv\nnamePrefix: kubevirt-\n",
        s__kustomization=f"resources: [hco.yaml]\ncomponents: [../{OURS}]\ncommonAnnotations: {{a: b}}\n",
        s__hco=HCO.replace("kubevirt-hyper", "hyper").replace("  namespace: openshift-cnv\n", ""),
    )
    found = read(tmp_path, files, OURS)
    assert (found.name, found.namespaced) == ("hyperconverged", False)
    assert found.body["metadata"] == {"name": "hyperconverged"}
    assert found.settled({**found.body, "spec": {"x": 1}}) == {
        "apiVersion": "hco.kubevirt.io/v1beta1",
        "kind": "HyperConverged",
        "metadata": {
            "name": "kubevirt-hyperconverged",
            "namespace": "openshift-cnv",
            "annotations": {"a": "b"},
        },
        "spec": {"x": 1},
    }


def test_what_runs_after_us_may_take_our_field_away(tmp_path: Path) -> None:
    late = PATCH.format(target="{kind: HyperConverged}").removeprefix(RES)
    late = late.replace("/spec, value: {}", "/metadata/annotations, value: {late: a}")
    found = read(tmp_path, base(f"{RES}components: [../{OURS}]\n{late}"), OURS)
    ours = apply(found.body, operations(found.body, [(("metadata", "annotations", "x/y"), "1")]))
    settled = found.settled(ours)
    assert isinstance(settled, dict)
    assert settled["metadata"]["annotations"] == {"late": "a"}


def test_what_fails_only_after_us(tmp_path: Path) -> None:
    late = "patches:\n- target: {kind: HyperConverged}\n  patch: '[{op: test, path: /spec, value: null}]'\n"
    found = read(tmp_path, base(f"{RES}components: [../{OURS}]\n{late}"), OURS)
    settled = found.settled({**found.body, "spec": {}})
    assert isinstance(settled, list)
    assert [(each.code, placed(each)) for each in settled] == [("base/unreadable", "base/kustomization.yaml:5:10")]


def test_an_overlay_changes_nothing_later(tmp_path: Path) -> None:
    found = read(tmp_path, base(RES + "commonAnnotations: {a: b}\n"))
    assert found.body["metadata"]["annotations"] == {"a": "b"}
    assert found.settled({"any": "thing"}) == {"any": "thing"}


def test_the_origin_leads_into_a_list(tmp_path: Path) -> None:
    items = "".join(f"{'- ' if i == 0 else '  '}{line}\n" for i, line in enumerate(HCO.splitlines()))
    found = read(tmp_path, base(hco=f"apiVersion: v1\nkind: List\nitems:\n{items}"))
    assert found.origin.below("metadata", "name").position == Position("base/hco.yaml", 7, 11, 23)


def test_symlinks(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "hco.yaml").write_text(HCO)
    root = tmp_path / "root"
    grow(root, {"base/kustomization.yaml": "resources: [hco.yaml, ../s]\n"})
    (root / "base/hco.yaml").symlink_to(outside / "hco.yaml")
    (root / "s").symlink_to(outside, target_is_directory=True)
    found = BaseReader(DiskTree(root)).read("base", WANTED, None)
    assert isinstance(found, list)
    assert [each.code for each in found] == ["base/unreadable", "base/unreadable"]
    assert all("link" in each.message for each in found)


def test_too_deep(tmp_path: Path) -> None:
    files = {f"d{i}/kustomization.yaml": f"resources: [../d{i + 1}]\n" for i in range(60)}
    (found,) = problems(tmp_path, files, at="d0")
    assert found.message == "folders refer to folders more than 50 levels deep"


def test_too_many(tmp_path: Path) -> None:
    files = {f"d{i}/kustomization.yaml": f"resources: [../d{i + 1}, ../d{i + 1}]\n" for i in range(20)}
    (found,) = problems(
        tmp_path, files | {"d20/kustomization.yaml": "resources: [x.yaml]\n", "d20/x.yaml": "a: b"}, at="d0"
    )
    assert found.message == "the base reads more than 2000 files"


class Counting:
    """A tree that counts how often each file is read."""

    def __init__(self, tree: DiskTree) -> None:
        self.tree = tree
        self.reads: list[str] = []

    def list(self, folder: str) -> Any:
        return self.tree.list(folder)

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        return self.tree.read(path)


def test_shared_files_are_read_once(tmp_path: Path) -> None:
    files = {f"b{i}/kustomization.yaml": "resources: [../base]\n" for i in range(20)} | base()
    tree = Counting(grow(tmp_path, files))
    reader = BaseReader(tree)
    found = [reader.read(f"b{i}", WANTED, None) for i in range(20)]
    assert len({id(each.origin.document) for each in found if isinstance(each, Base)}) == 1
    assert tree.reads.count("base/hco.yaml") == tree.reads.count("base/kustomization.yaml") == 1


def test_bases_do_not_change_what_others_read(tmp_path: Path) -> None:
    patch = "resources: [../base]\npatches:\n- target: {kind: H.*}\n  patch: '[{op: add, path: /spec/a/b, value: 1}]'\n"
    reader = BaseReader(grow(tmp_path, base(hco=HCO + "spec: {a: {}}\n") | {"b/kustomization.yaml": patch}))
    found = [reader.read(folder, WANTED, None) for folder in ("base", "b", "base")]
    assert [each.body["spec"] for each in found if isinstance(each, Base)] == [{"a": {}}, {"a": {"b": 1}}, {"a": {}}]


YAMLISH = st.text(alphabet="abk:-[]{}#&*!|>'\"%@`\n \t~0{}.,?", max_size=60)
SOURCES: list[Callable[[str], dict[str, str]]] = [
    base,
    lambda text: base(RES + text),
    lambda text: base(hco=HCO + text),
    lambda text: base(RES + "patches: [{path: p.yaml, target: {kind: H.*}}]\n", base__p=text),
]


@given(text=YAMLISH, source=st.sampled_from(SOURCES))
def test_any_text_is_answered(
    text: str, source: Callable[[str], dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    tree = grow(tmp_path_factory.mktemp("tree"), source(text))
    found = BaseReader(tree).read("base", WANTED, None)
    assert isinstance(found, Base) or [each.message for each in found]
