"""The job's command line, as far as it goes without a cluster; and what rendering must not load."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from renderer.softtaint.__main__ import _config, _parser
from renderer.softtaint.config import Prometheus, encode
from tests.softtaint_nodes import config

ROOT = Path(__file__).parents[1]
WRONG = 2


def run(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "renderer.softtaint", *map(str, arguments)]
    environment = {"PATH": os.defpath, "HOME": "/nonexistent", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60, **more)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(encode(config()))
    return path


def problems(ended: subprocess.CompletedProcess[str]) -> list[str]:
    return [json.loads(line)["problem"] for line in ended.stderr.splitlines()]


def test_outside_a_cluster_a_kubeconfig_is_needed(file: Path) -> None:
    ended = run(f"--config={file}")
    assert ended.returncode == WRONG
    [problem] = problems(ended)
    assert problem.startswith("this is no pod, and --kubeconfig is not given")


def test_all_problems_of_a_configuration_are_told_before_anything_else(file: Path) -> None:
    given = json.loads(file.read_text()) | {"mode": "Perhaps", "staleAfterSeconds": 0, "colour": "blue"}
    del given["query"]
    file.write_text(json.dumps(given))
    ended = run(f"--config={file}", "--kubeconfig=/nonexistent")
    assert ended.returncode == WRONG
    assert sorted(problem.partition(":")[0] for problem in problems(ended)) == [
        "colour",
        "mode",
        "query",
        "staleAfterSeconds",
    ]


@pytest.mark.parametrize("how", ["absent", "null"])
@pytest.mark.parametrize(("mode", "missing"), [("Enforce", 2), ("DryRun", 2), ("RemoveOnly", 0), (None, 3)])
def test_only_the_mode_that_asks_nobody_does_without_prometheus(
    file: Path, how: str, mode: str | None, missing: int
) -> None:
    given = json.loads(file.read_text()) | {"mode": mode, "query": None, "prometheus": None}
    if how == "absent":
        given = {name: value for name, value in given.items() if value is not None}
    file.write_text(json.dumps(given))
    told = problems(run(f"--config={file}", "--kubeconfig=/nonexistent"))
    wanted = [problem for problem in told if problem.partition(":")[0] in ("mode", "query", "prometheus")]
    assert len(wanted) == missing, told


def test_a_prometheus_that_is_there_is_held_against_its_rules_in_every_mode(file: Path) -> None:
    given = json.loads(file.read_text()) | {"mode": "RemoveOnly", "prometheus": {"url": "ftp://a", "port": 1}}
    file.write_text(json.dumps(given))
    told = problems(run(f"--config={file}"))
    assert sorted(problem.partition(":")[0] for problem in told) == ["prometheus.port", "prometheus.url"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("absent", None, "No such file"), ("empty", "", "not JSON"), ("list", "[]", "the file: expected an object")],
)
def test_files_that_are_none(tmp_path: Path, name: str, content: str | None, said: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    ended = run(f"--config={path}")
    assert (ended.returncode, len(problems(ended))) == (WRONG, 1)
    assert said in problems(ended)[0]


def test_half_a_character_is_told(file: Path) -> None:
    file.write_text('{"\\ud800": 1}')
    ended = run(f"--config={file}")
    assert ended.returncode == WRONG
    assert any("unknown key" in problem for problem in problems(ended))


@pytest.mark.parametrize(
    "address", ["http://prometheus:65536", "http://prometheus:x", "http://prometheus:0", "http://:1"]
)
def test_an_address_that_is_none_is_told_at_the_start(file: Path, address: str) -> None:
    given = json.loads(file.read_text())
    asked = run(f"--config={file}", f"--prometheus-url={address}")
    file.write_text(json.dumps(given | {"prometheus": {"url": address}}))
    for ended in (asked, run(f"--config={file}")):
        assert ended.returncode == WRONG
        [problem] = problems(ended)
        assert problem.startswith("prometheus.url: ")


@pytest.mark.parametrize("port", ["99999", "0", "-1", "x", "9" * 5000])
def test_ports_that_are_none(file: Path, port: str) -> None:
    ended = run(f"--config={file}", f"--port={port}")
    assert (ended.returncode, "is no port" in ended.stderr) == (WRONG, True)


def test_a_port_in_use_is_told(file: Path, tmp_path: Path) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | {"runAs": "Deployment"}))
    cluster = {"server": "http://127.0.0.1:1"}
    kubeconfig = {
        "clusters": [{"name": "a", "cluster": cluster}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
    with socket.create_server(("", 0)) as listener:
        port = listener.getsockname()[1]
        ended = run(f"--config={file}", f"--kubeconfig={tmp_path / 'kubeconfig'}", f"--port={port}")
    assert ended.returncode == WRONG
    assert problems(ended) == [f"--port {port}: Address already in use"]


def test_another_prometheus_is_sent_no_token_of_this_one(file: Path) -> None:
    def asked(*flags: str) -> Prometheus | None:
        return _config(_parser().parse_args([f"--config={file}", *flags])).prometheus

    def server(url: str, *files: str) -> Prometheus:
        return Prometheus(url=url, **dict(zip(("ca_file", "token_file"), files, strict=False)))

    stated = {"url": "https://in.example", "caFile": "/ca", "tokenFile": "/token"}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"prometheus": stated}))
    url, ca, token = "https://out.example", "--prometheus-ca-file=ours", "--prometheus-token-file=mine"
    assert asked() == server("https://in.example", "/ca", "/token")
    assert asked(f"--prometheus-url={url}") == server(url)
    assert asked(f"--prometheus-url={url}", ca, token) == server(url, "ours", "mine")
    assert asked(token) == server("https://in.example", "/ca", "mine")


def test_help_needs_nothing() -> None:
    ended = run("--help")
    assert (ended.returncode, "--dry-run" in ended.stdout) == (0, True)


def test_a_closed_log_changes_no_exit_code() -> None:
    command = f"{sys.executable} -m renderer.softtaint --config=/nonexistent 2>&-"
    ended = subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, capture_output=True, check=False, timeout=60)
    assert ended.returncode == WRONG


def test_rendering_loads_no_client_of_a_cluster() -> None:
    code = (
        "import sys; from renderer.__main__ import run; run(['check']); "
        "print(sorted({'kubernetes', 'urllib3', 'prometheus_client', 'renderer.softtaint.passes'} & set(sys.modules)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.stdout.splitlines()[-1:] == ["[]"], ended.stderr
