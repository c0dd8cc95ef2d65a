"""The example fleet and the real kustomize: it builds, in silence, to what was rendered; and each proof can fail."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ruamel.yaml import YAML

from renderer import building, kustomize, pipeline
from renderer.building import Workplace
from renderer.kustomize import Kustomize, Missing
from renderer.model import Finding
from renderer.pipeline import Outcome, Settings
from renderer.tree import DiskTree, compare
from tests import real

PARTS = ("policies", "overlays", "platform")
CLUSTERS = sorted(path.name for path in (real.ROOT / "overlays").glob("[!_]*"))
FOLDERS = [*CLUSTERS, *sorted(f"_node-tuning/{path.name}" for path in (real.ROOT / "overlays/_node-tuning").iterdir())]


def command(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`kubevirt-policy` at the root of a repository."""
    program = [sys.executable, "-P", "-m", "renderer", *arguments]
    env = {**os.environ, "PYTHONPATH": os.fspath(real.ROOT), **environment}
    return subprocess.run(program, cwd=root, env=env, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """The example fleet with nothing but what git tracks, as it lies in the work tree."""
    git = shutil.which("git") or "git"
    listed = subprocess.run([git, "ls-files", "-z", "--", *PARTS], cwd=real.ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (real.ROOT / name).exists():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(real.ROOT / name, tmp_path / name)
    (tmp_path / ".git").mkdir()
    return tmp_path


def render(root: Path) -> Outcome:
    outcome = pipeline.run(DiskTree(root), Settings())
    assert not outcome.failed
    return outcome


def silent(*progress: int) -> None:
    """Nobody watches."""


def prove(root: Path, outcome: Outcome, only: str) -> list[Finding]:
    """The proof alone: `build` refuses such overlays before, because they are not what the policies render."""
    work = Workplace(root, DiskTree(root), Settings(), real.kustomize(), 2, silent)
    return building.prove(outcome, [only], {}, work)


def test_committed_overlays_are_rendered(fleet: Path) -> None:
    outcome = render(fleet)
    assert compare(fleet, "overlays", outcome.files).changes == ()
    assert sorted(outcome.rendered) == CLUSTERS


@pytest.mark.parametrize("folder", FOLDERS)
def test_overlay_builds_in_silence(folder: str) -> None:
    built = real.kustomize().build(real.ROOT / "overlays" / folder)
    assert (built.code, built.err) == (0, "")


def test_build_proves_the_fleet(fleet: Path) -> None:
    real.kustomize()
    before = snapshot(fleet)
    ended = command(fleet, "build")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "build/" not in ended.stdout
    assert f"Built {len(CLUSTERS)} overlays with kustomize" in ended.stderr
    assert snapshot(fleet) == before


def snapshot(root: Path) -> dict[str, bytes]:
    return {os.fspath(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def other_kustomize() -> Kustomize:
    """One of another release than ours, where this machine has one."""
    places = os.environ.get("PATH", "").split(os.pathsep)
    for program in (Path(place, name) for place in places for name in ("kustomize", "kubectl")):
        if os.access(program, os.X_OK):
            try:
                found = kustomize.find(os.fspath(program), os.environ, Path())
            except Missing:
                continue
            if found.version != real.kustomize().version:
                return found
    pytest.skip("there is no second kustomize on PATH to compare with")


def test_two_releases_of_kustomize_agree(fleet: Path) -> None:
    ours, other = real.kustomize(), other_kustomize()
    for folder in (*(f"overlays/{name}" for name in FOLDERS), "platform/prod-east", "platform/lab-flux"):
        one, two = ours.build(fleet / folder), other.build(fleet / folder)
        assert (one.code, two.code, one.err, two.err) == (0, 0, "", "")
        assert objects(one.out) == objects(two.out)


def objects(text: str) -> list[Any]:
    return list(yaml.load_all(text, yaml.CSafeLoader))


def test_all_readers_agree_on_our_files(fleet: Path) -> None:
    for path in sorted((fleet / "overlays").rglob("*.yaml")):
        text = path.read_text()
        first, second = objects(text), list(YAML(typ="safe", pure=True).load_all(io.StringIO(text)))
        assert first == second, path
        if path.parent.name == "operator" and path.name != "kustomization.yaml" and isinstance(first[0], dict):
            assert objects(real.kustomize().build(path.parent).out) == first


# Mutations: what is on disk differs from what was rendered, in one way each.


def replaced(root: Path, file: str, old: str, new: str) -> None:
    path = root / file
    text = path.read_text()
    assert old in text, f"{file} has no {old}"
    path.write_text(text.replace(old, new, 1))


APPENDED = (
    "op: add, path: /spec/configuration/developerConfiguration/featureGates/-, value: InstancetypeReferencePolicy"
)
SECOND = "patches:\n- {path: hyperconverged.yaml, target: {kind: CDI}}"
FROM = "changes spec.evictionStrategy of HyperConverged openshift-cnv/kubevirt-hyperconverged from"
EAST, WEST, EDGE = "overlays/prod-east/operator", "overlays/prod-west/operator", "overlays/edge-1"
MUTATIONS: dict[str, tuple[str, str, str, str, str, str]] = {
    "a target that matches nothing": (
        *("prod-east", f"{EAST}/kustomization.yaml", "^kubevirt-hyperconverged$", "^kubevirt-hyperconvergd$"),
        *("build/patch", "jsonpatch of HyperConverged openshift-cnv/kubevirt-hyperconverged is"),
    ),
    "a target that matches nothing, form overlay": (
        *("prod-west", f"{WEST}/kustomization.yaml", "^openshift-cnv$", "^openshift$"),
        *("build/patch", "spec.tuningPolicy of HyperConverged openshift-cnv/kubevirt-hyperconverged is absent"),
    ),
    "one more operation": (
        *("prod-east", f"{EAST}/hyperconverged.yaml", "- op:", "- {op: add, path: /spec/x, value: 1}\n- op:"),
        *("build/patch", "the patch also changes spec.x of HyperConverged openshift-cnv/kubevirt-hyperconverged"),
    ),
    "an operation that takes away": (
        *("prod-west", f"{WEST}/hyperconverged.yaml", "- op:", "- {op: remove, path: /spec/evictionStrategy}\n- op:"),
        *("build/patch", FROM),
    ),
    "another value": (
        *("prod-west", f"{WEST}/hyperconverged.yaml", "value: annotation", "value: highBurst"),
        *("build/patch", 'is "highBurst" after the build, not "annotation"'),
    ),
    "another item appended": (
        *("lab-flux", "overlays/lab-flux/operator/kubevirt.yaml", "value: Instancetype", "value: Instancetypes"),
        *("build/patch", "featureGates[1] of KubeVirt kubevirt/kubevirt is"),
    ),
    "an item appended twice": (
        *("lab-flux", "overlays/lab-flux/operator/kubevirt.yaml", "- op:", f"- {{{APPENDED}}}\n- op:"),
        *("build/patch", "featureGates of KubeVirt kubevirt/kubevirt is"),
    ),
    "a patch that does not apply": (
        *("prod-west", f"{WEST}/hyperconverged.yaml", "path: /spec/tuningPolicy", "path: /spec/missing/tuningPolicy"),
        *("build/failed", "cannot build overlays/prod-west"),
    ),
    "another object patched": (
        *("prod-west", f"{WEST}/kustomization.yaml", "patches:", SECOND),
        *("build/patch", "of CDI openshift-cnv/bystander from"),
    ),
    "another object brought": (
        *("prod-west", f"{WEST}/kustomization.yaml", "resources:", "resources:\n- ../../../platform/lab-kv"),
        *("build/patch", "the patch brings ConfigMap kubevirt-limits"),
    ),
    "another value in the whole object": (
        *("edge-1", f"{EDGE}/operator/hyperconverged.yaml", "tuningPolicy: annotation", "tuningPolicy: highBurst"),
        *("build/output", 'spec.tuningPolicy of HyperConverged openshift-cnv/kubevirt-hyperconverged is "highBurst"'),
    ),
    "an object too many": (
        *("edge-1", f"{EDGE}/kustomization.yaml", "- operator", "- operator\n- ../../platform/lab-kv"),
        *("build/output", "the build gives ConfigMap kubevirt-limits, which was not rendered"),
    ),
    "an object too few": (
        *("edge-1", f"{EDGE}/kustomization.yaml", "- operator\n", ""),
        *("build/output", "does not give HyperConverged openshift-cnv/kubevirt-hyperconverged"),
    ),
    "an argument too many, apart": (
        *("prod-lab", "overlays/_node-tuning/prod-lab/99-openshift-machineconfig-worker-psi-karg.yaml"),
        *("- psi=1", "- psi=1\n  - quiet"),
        *("build/output", "spec.kernelArguments"),
    ),
    "a message": (
        *("edge-1", f"{EDGE}/kustomization.yaml", "resources:", "commonLabels: {a: b}\nresources:"),
        *("build/stderr", "building overlays/edge-1 is not silent: # Warning: 'commonLabels' is deprecated"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=list(MUTATIONS))
def test_proof_can_fail(fleet: Path, mutation: tuple[str, str, str, str, str, str]) -> None:
    cluster, file, old, new, code, words = mutation
    with (fleet / "platform/prod-west/hyperconverged.yaml").open("a") as out:
        out.write(BYSTANDER)
    (fleet / "platform/lab-kv").mkdir()
    shutil.copy(fleet / "platform/limits.yaml", fleet / "platform/lab-kv")
    (fleet / "platform/lab-kv/kustomization.yaml").write_text("resources: [limits.yaml]\n")
    outcome = render(fleet)
    assert prove(fleet, outcome, cluster) == []
    replaced(fleet, file, old, new)
    found = prove(fleet, outcome, cluster)
    assert [one for one in found if one.code == code and words in one.message], found
    assert all(one.clusters == (cluster,) and one.help for one in found)
    ended = command(fleet, "build")
    assert (ended.returncode, "Nothing was built" in ended.stderr) == (1, True)
    assert f"{file}:" in ended.stdout
    assert "[overlay/edited]" in ended.stdout


BYSTANDER = """\
---
apiVersion: cdi.kubevirt.io/v1beta1
kind: CDI
metadata: {name: bystander, namespace: openshift-cnv}
spec: {evictionStrategy: None}
"""


def test_object_that_is_not_there(fleet: Path) -> None:
    outcome = render(fleet)
    replaced(fleet, "platform/prod-east/kustomization.yaml", "components:", "namespace: elsewhere\ncomponents:")
    found = prove(fleet, outcome, "prod-east")
    assert {one.code for one in found} == {"build/patch"}
    assert "the build does not give HyperConverged openshift-cnv/kubevirt-hyperconverged" in {
        one.message for one in found
    }


def test_base_that_is_not_silent_is_a_warning(fleet: Path) -> None:
    replaced(
        fleet, "platform/prod-west/kustomization.yaml", "resources:", "bases: []\ncommonLabels: {a: b}\nresources:"
    )
    assert command(fleet, "render").returncode == 0
    ended = command(fleet, "build", "--cluster", "prod-west")
    assert ended.returncode == 0, ended.stdout
    assert "building platform/prod-west is not silent" in ended.stdout
    assert "[build/base-stderr]" in ended.stdout
    assert command(fleet, "build", "--cluster", "prod-west", "--strict").returncode == 1
