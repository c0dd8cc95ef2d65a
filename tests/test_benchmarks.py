"""The benchmarks run: a fleet that no longer renders would measure nothing."""

import json
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parents[1] / "benchmarks/run.py"


def test_quick_run(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    command = [sys.executable, str(RUN), "--quick", "--runs", "1", "--sizes", "90", "--json", str(results)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    rows = {(row["what"], row["clusters"]) for row in json.loads(results.read_text())["rows"]}
    assert {("render cold", 90), ("render unchanged", 90), ("check", 90)} <= rows
    assert "check does not import the cluster client: met" in ended.stdout
