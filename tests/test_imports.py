"""The import contracts in pyproject.toml hold, and each of them refuses what it is there to refuse."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOWNWARDS = "Imports go downwards only"

# Contract, the module that offends, the offending line.
OFFENCES = [
    (DOWNWARDS, "model", "import renderer.pipeline"),
    (DOWNWARDS, "decode", "import renderer.commands"),
    (DOWNWARDS, "report", "import renderer.tree"),
    (DOWNWARDS, "a_module_without_a_layer", "import renderer.model"),
    ("Only the edges know the model library", "pipeline", "import msgspec"),
    ("Only the edges know the model library", "commands", "from msgspec import Struct"),
    ("Only documents and emit know ruamel.yaml", "kinds", "from ruamel.yaml import YAML"),
    ("Only documents and emit know ruamel.yaml", "decode", "from _ruamel_yaml import CParser"),
    ("Only promql knows the PromQL parser", "kinds", "import promql_parser"),
    ("Only promql knows RE2", "checks", "import re2"),
    ("Only the command line knows click", "pipeline", "import click"),
    ("Only softtaint.cluster knows kubernetes", "commands", "from kubernetes import client"),
    ("Only softtaint.cluster knows kubernetes", "softtaint", "import kubernetes.config"),
    ("Only the job asks over the network and tells its figures", "catalog", "import prometheus_client"),
    ("Only the job asks over the network and tells its figures", "tree", "import urllib3"),
    ("Rendering loads nothing of the job but what both share", "kinds", "import renderer.softtaint.cluster"),
]


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    command = [str(program), "--no-logo", "--no-cache"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_contracts_hold() -> None:
    ended = lint(ROOT)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_contract_has_an_offence() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = [contract["name"] for contract in config["tool"]["importlinter"]["contracts"]]
    assert contracts == list(dict.fromkeys(contract for contract, _, _ in OFFENCES))


@pytest.mark.parametrize(("contract", "module", "line"), OFFENCES)
def test_contract_refuses(contract: str, module: str, line: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    package = shutil.copytree(ROOT / "renderer", tmp_path / "renderer", ignore=shutil.ignore_patterns("__pycache__"))
    offender = package / module / "offence.py" if (package / module).is_dir() else package / f"{module}.py"
    with offender.open("a") as file:
        file.write(f"\n{line}\n")
    ended = lint(tmp_path)
    assert ended.returncode == 1, ended.stderr
    broken = [text.removesuffix(" BROKEN") for text in ended.stdout.splitlines() if text.endswith(" BROKEN")]
    assert broken == [contract]
