"""The benchmarks run: a fleet that no longer renders would measure nothing."""

import json
import subprocess
import sys
from pathlib import Path

from tests.testbed.fixtures import SERVERS, Programs

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_a_fleet_with_policies_of_every_kind_renders(tmp_path: Path) -> None:
    write = f"import fleet, pathlib; fleet.write(pathlib.Path({str(tmp_path)!r}), 90, every_kind=True)"
    subprocess.run([sys.executable, "-c", write], cwd=BENCHMARKS, check=True)
    command = [sys.executable, "-P", "-m", "renderer", "render", "--root", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    kinds = {path.parent.name for path in tmp_path.glob("overlays/*/*/*.yaml")}
    assert kinds == {"operator", "descheduler", "recording-rules", "soft-tainter"}


def test_quick_run(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [
        sys.executable,
        str(BENCHMARKS / "run.py"),
        "--quick",
        "--runs",
        "1",
        "--sizes",
        "90",
        "--json",
        str(results),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    rows = {(row["what"], row["clusters"]) for row in json.loads(results.read_text())["rows"]}
    assert {("render cold", 90), ("render unchanged", 90), ("check", 90)} <= rows
    assert "check does not import the cluster client: met" in ended.stdout


@SERVERS
def test_soft_tainter(program: Programs, tmp_path: Path) -> None:
    for name in ("etcd", "kube-apiserver", "prometheus"):
        program(name)
    results = tmp_path / "results.json"
    command = [sys.executable, str(BENCHMARKS / "softtaint.py"), "--runs", "1", "--sizes", "20", "--json", str(results)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    rows = {row["what"]: row["changed"] for row in json.loads(results.read_text())["rows"]}
    assert rows == {"first": 10, "nothing to do": 0, "5 % changed": 1, "all removed": 11}
    assert "no conflict without a foreign writer: 0, met" in ended.stdout
    assert "one write for each changed node, none where nothing changed: met" in ended.stdout
