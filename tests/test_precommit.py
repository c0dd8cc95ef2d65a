"""The hooks of `.pre-commit-hooks.yaml`, run by the real pre-commit on real commits.

pre-commit reads our own manifest from a repository that holds it; only the language is `system`, so that the program
under test runs, and nothing is installed from the network.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.real import missing
from tests.repository import CLUSTER_FILE as CLUSTER

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
PROGRAMS = Path(sys.executable).parent
POLICY = """\
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: api-limits}
spec:
  clusters: {}
  static: {qps: 300, burst: 600}
"""


@dataclass(frozen=True)
class Repository:
    """A Git repository whose commits run one of the hooks."""

    root: Path
    home: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return _run(self.root, self.home, *command)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def render(self) -> None:
        assert self.run("kubevirt-policy", "render").returncode == 0

    def commit(self) -> str | None:
        """What the hook says where it refuses the commit of all that is staged; None once it is committed."""
        ended = self.run("git", "commit", "--message", "change")
        return ended.stdout + ended.stderr if ended.returncode else None

    def commit_all(self) -> str | None:
        assert self.run("git", "add", "--all").returncode == 0
        return self.commit()


def _run(root: Path, home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "PATH": os.pathsep.join([str(PROGRAMS), os.environ.get("PATH", os.defpath)]),
        "PRE_COMMIT_COLOR": "never",
        "PRE_COMMIT_HOME": str(home / "pre-commit"),
    }
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "somebody", f"GIT_{role}_EMAIL": "somebody@example.com"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=120)


def _git_repository(root: Path, home: Path) -> Repository:
    root.mkdir()
    made = Repository(root, home)
    assert made.run("git", "init", "--quiet", "--initial-branch", "main").returncode == 0
    return made


def _repository(tmp_path: Path, hook: str) -> Repository:
    """A repository with one cluster and one policy, rendered and committed."""
    if shutil.which("git") is None or not (PROGRAMS / "pre-commit").exists():
        missing("pre-commit or Git", "make env-dev installs pre-commit; Git comes with the system")
    home = tmp_path / "home"
    home.mkdir()
    hooks = _git_repository(tmp_path / "hooks", home)
    shutil.copy(MANIFEST, hooks.root)
    assert hooks.commit_all() is None
    revision = hooks.run("git", "rev-parse", "HEAD").stdout.strip()
    made = _git_repository(tmp_path / "fleet", home)
    chosen = [{"id": hook, "language": "system"}]
    config = {"repos": [{"repo": str(hooks.root), "rev": revision, "hooks": chosen}]}
    made.write(".pre-commit-config.yaml", yaml.safe_dump(config))
    made.write("policies/clusters.yaml", CLUSTER)
    made.write("policies/limits.yaml", POLICY)
    made.render()
    installed = made.run("pre-commit", "install")
    assert installed.returncode == 0, installed.stderr
    assert made.commit_all() is None
    return made


@pytest.fixture
def checked(tmp_path: Path) -> Repository:
    return _repository(tmp_path, "kubevirt-policy-check")


@pytest.fixture
def rendering(tmp_path: Path) -> Repository:
    return _repository(tmp_path, "kubevirt-policy-render")


def test_manifest_is_valid(tmp_path: Path) -> None:
    if not (PROGRAMS / "pre-commit").exists():
        missing("pre-commit", "make env-dev installs it")
    assert _run(tmp_path, tmp_path, "pre-commit", "validate-manifest", str(MANIFEST)).returncode == 0


@pytest.mark.parametrize(("command", "options"), [("check", "--tracked"), ("render", "--fail-on-change --tracked")])
def test_hook_runs_whatever_was_changed(command: str, options: str) -> None:
    """A hook that is called with the changed files alone does not see one that was deleted."""
    (hook,) = (one for one in yaml.safe_load(MANIFEST.read_bytes()) if one["id"] == f"kubevirt-policy-{command}")
    assert hook["entry"] == f"kubevirt-policy {command} {options}"
    assert hook["always_run"] is True
    assert hook["pass_filenames"] is False
    assert "files" not in hook
    assert "types" not in hook


def test_edit_without_render_is_refused(checked: Repository) -> None:
    checked.write("policies/limits.yaml", POLICY.replace("300", "350"))
    said = checked.commit_all()
    assert said is not None
    assert "overlays/prod-east/operator/hyperconverged.yaml" in said
    assert "[overlay/stale]" in said


def test_edit_with_render_passes(checked: Repository) -> None:
    checked.write("policies/limits.yaml", POLICY.replace("300", "350"))
    checked.render()
    assert checked.commit_all() is None


def test_rendered_and_not_added_is_refused(checked: Repository) -> None:
    """The commit counts, not the work tree."""
    checked.write("policies/limits.yaml", POLICY.replace("300", "350"))
    checked.render()
    assert checked.run("git", "add", "policies").returncode == 0
    said = checked.commit()
    assert said is not None
    assert "[overlay/stale]" in said


def test_deleted_policy_is_refused_until_rendered(checked: Repository) -> None:
    (checked.root / "policies/limits.yaml").unlink()
    said = checked.commit_all()
    assert said is not None
    assert "[overlay/stale]" in said
    checked.render()
    assert checked.commit_all() is None


def test_deleted_cluster_is_refused_until_rendered(checked: Repository) -> None:
    checked.write("policies/lab.yaml", CLUSTER.replace("prod-east", "lab"))
    checked.render()
    assert checked.commit_all() is None
    (checked.root / "policies/lab.yaml").unlink()
    said = checked.commit_all()
    assert said is not None
    assert "overlays/lab/kustomization.yaml" in said
    assert "[overlay/orphaned]" in said
    checked.render()
    assert checked.commit_all() is None
    assert not (checked.root / "overlays/lab").exists()


def test_hand_edit_is_refused(checked: Repository) -> None:
    file = checked.root / "overlays/prod-east/operator/hyperconverged.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("300", "900"), encoding="utf-8")
    said = checked.commit_all()
    assert said is not None
    assert "[overlay/edited]" in said


def test_error_is_refused_with_its_place(checked: Repository) -> None:
    checked.write("policies/limits.yaml", POLICY.replace("300", "1"))
    said = checked.commit_all()
    assert said is not None
    assert "policies/limits.yaml:6:17: error: " in said


def test_other_files_can_be_committed(checked: Repository) -> None:
    checked.write("notes.txt", "nothing that concerns the overlays\n")
    assert checked.commit_all() is None


def test_render_hook_stops_once_so_that_the_overlays_are_added(rendering: Repository) -> None:
    rendering.write("policies/limits.yaml", POLICY.replace("300", "350"))
    said = rendering.commit_all()
    assert said is not None
    assert "files were modified by this hook" in said
    assert rendering.commit_all() is None
    assert rendering.run("kubevirt-policy", "check").returncode == 0


def test_render_hook_sees_a_deleted_policy(rendering: Repository) -> None:
    (rendering.root / "policies/limits.yaml").unlink()
    assert rendering.commit_all() is not None
    assert rendering.commit_all() is None
    assert rendering.run("kubevirt-policy", "check").returncode == 0


def test_new_cluster_is_refused_until_its_overlay_is_added(checked: Repository) -> None:
    """pre-commit looks at tracked files only, and so passes over a new overlay."""
    checked.write("policies/second.yaml", CLUSTER.replace("prod-east", "second"))
    checked.render()
    assert checked.run("git", "add", "policies").returncode == 0
    said = checked.commit()
    assert said is not None
    assert "overlays/second/kustomization.yaml:1:1: error: " in said
    assert "[overlay/untracked]" in said
    assert checked.commit_all() is None


def test_render_hook_stops_until_a_new_overlay_is_added(rendering: Repository) -> None:
    rendering.write("policies/second.yaml", CLUSTER.replace("prod-east", "second"))
    assert rendering.run("git", "add", "policies").returncode == 0
    said = rendering.commit()
    assert said is not None
    assert "Commit the changed overlays: git add overlays" in said
    said = rendering.commit()  # nothing is left to write, and the overlay is still not in the commit
    assert said is not None
    assert "[overlay/untracked]" in said
    assert rendering.commit_all() is None
    assert rendering.run("git", "ls-files", "overlays/second").stdout


PRESSURE = """\
apiVersion: kubevirt-policy.dev/v1alpha1
kind: RebalancePolicy
metadata: {name: rebalance}
spec:
  clusters: {}
  mode: Automatic
  pressureStall: {enable: true}
"""


def test_tracked_for_one_cluster_looks_at_what_is_applied_apart_too(tmp_path: Path) -> None:
    made = _git_repository(tmp_path / "fleet", tmp_path)
    made.write("policies/clusters.yaml", CLUSTER.replace("versions: {", 'versions: {deschedulerOperator: "5.3.4", '))
    made.write("policies/rebalance.yaml", PRESSURE)
    ended = made.run("kubevirt-policy", "render", "--tracked", "--cluster", "prod-east")
    assert ended.returncode == 1, ended.stderr
    assert "overlays/_node-tuning/prod-east/kustomization.yaml:1:1: error: Git does not track" in ended.stdout
    assert made.run("git", "add", "overlays").returncode == 0
    assert made.run("kubevirt-policy", "render", "--tracked", "--cluster", "prod-east").returncode == 0


@pytest.mark.parametrize("path", ["", os.environ.get("PATH", os.defpath)], ids=["no git", "no work tree"])
def test_tracked_without_git_cannot_run(tmp_path: Path, path: str) -> None:
    root = tmp_path / "fleet"
    (root / "policies").mkdir(parents=True)
    (root / "policies/clusters.yaml").write_text(CLUSTER, encoding="utf-8")
    command = [str(PROGRAMS / "kubevirt-policy"), "render", "--tracked"]
    environment = {"PATH": path, "HOME": str(tmp_path), "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    ended = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "--tracked needs " in ended.stderr
