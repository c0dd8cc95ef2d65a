"""What becomes of a file of unit tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from renderer import promtool
from renderer.commands import testbed
from renderer.promtool import with_rules

FILES = {
    "none": "evaluation_interval: 1m\ntests: [1]\n",
    "first": "rule_files:\n- a.yaml\n- b.yaml\n# a comment\nevaluation_interval: 1m\ntests: [1]\n",
    "last": "evaluation_interval: 1m\ntests: [1]\nrule_files:\n  - a.yaml",
    "flow": "evaluation_interval: 1m\nrule_files: [a.yaml, \n  b.yaml]\ntests: [1]\n",
    "quoted": '"rule_files" : [a.yaml]\nevaluation_interval: 1m\ntests: [1]\n',
    "a marker": "# about\n---\nrule_files: []\nevaluation_interval: 1m\ntests: [1]\n",
    "JSON": '{"rule_files": ["a.yaml"], "evaluation_interval": "1m", "tests": [1]}',
    "JSON, the key last": '{"evaluation_interval": "1m", "tests": [1], "rule_files": ["a.yaml"]}',
    "a marker at the end": "evaluation_interval: 1m\ntests: [1]\n---\n",
    "an end at the end": "evaluation_interval: 1m\ntests: [1]\nrule_files: [a.yaml]\n...\n",
    "a mark of the encoding": "\ufeffrule_files: []\nevaluation_interval: 1m\ntests: [1]\n",
    "an indented root": "  rule_files:\n  - a.yaml\n  evaluation_interval: 1m\n  tests: [1]\n",
    "a flow root after a marker": "---\n{evaluation_interval: 1m, tests: [1], rule_files: [a.yaml]}\n",
    "other line ends": "evaluation_interval: 1m # \u2028\ntests: [1]\nrule_files:\n- ü\n",
    "CRLF": "rule_files:\r\n- a.yaml\r\nevaluation_interval: 1m\r\ntests: [1]\r\n",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_rule_files(text: str) -> None:
    found: Any = next(yaml.safe_load_all(with_rules(text, ["x.yaml", 'odd "name".yaml'])))
    assert found == {"rule_files": ["x.yaml", 'odd "name".yaml'], "evaluation_interval": "1m", "tests": [1]}


def test_the_rest_stays_as_it_is() -> None:
    rest = "tests:\n- interval: 1m\n  # 2e9 is a number there\n  x: [2e9, .inf, 0x10]\n  rule_files: inner\n"
    assert with_rules(rest, ["x.yaml"]) == rest + 'rule_files: ["x.yaml"]\n'


def test_lines_keep_their_numbers() -> None:
    text = "# a\nrule_files:\n- a.yaml\n- b.yaml # c\n\nevaluation_interval: 1m\ntests:\n- foo: 1\n---\n"
    lines = with_rules(text, ["x.yaml"]).split("\n")
    assert [number for number, line in enumerate(lines) if line == "- foo: 1"] == [7]


def test_what_failed() -> None:
    lines = [
        "Processing test file: t.yml",
        "  FAILED:",
        "    name: first,",
        "    alertname: Node is busy, time: 1m, ",
        "        exp:[",
        '    expr: "a:b{c=\\"d\\"}", time: 5m,',
        "        got: nil",
        "    2:5: parse error: unexpected end",
        'r.yml: 5:11: group "g.a", rule 2, "x": could not parse expression: 1:4',
        'r.yml: group "g", rule 1, "a1": annotation "summary": template: no',
    ]
    found = promtool.failures(lines)
    assert [(one.alert, one.expr, one.rule, one.text, len(one.lines)) for one in found] == [
        ("Node is busy", "", None, None, 3),
        ("", 'a:b{c="d"}', None, None, 2),
        ("", "", None, None, 1),
        ("", "", ("g.a", 2), None, 1),
        ("", "", ("g", 1), ("annotations", "summary"), 1),
    ]


def test_another_program_is_no_promtool(tmp_path: Path) -> None:
    assert not promtool.is_promtool(_program(tmp_path, "#!/bin/sh\necho prometheus, version 3.16.0\n"))


@pytest.mark.parametrize("text", ["{a: [1}", "- a: [", "- 1\n", "tests: " + "[" * 100_000])
def test_no_mapping(text: str) -> None:
    with pytest.raises(ValueError, match="line 1: "):
        with_rules(text, [])


def test_several_documents() -> None:
    with pytest.raises(ValueError, match="several documents"):
        with_rules("tests: [1]\n---\ntests: [2]\n", [])


@pytest.mark.parametrize(
    "text",
    ["", "evaluation_interval: 1m\n", "tests: []\n", "tests:\n", "rule_files: [a]\n", "a:\n  tests: [1]\n", "{}"],
)
def test_no_tests(text: str) -> None:
    with pytest.raises(ValueError, match="no tests"):
        with_rules(text, [])


def _program(folder: Path, text: str) -> Path:
    program = folder / "promtool"
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    return program


def test_a_path_from_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = _program(tmp_path, "#!/bin/sh\n")
    monkeypatch.chdir(tmp_path)
    assert promtool.find("./promtool") == program


def test_the_one_on_path_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = tmp_path / "built"
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert promtool.find(None) is None
    assert promtool.find(None, [built]) == built
    assert promtool.find("other", [built]) is None
    (tmp_path / "bin").mkdir()
    program = _program(tmp_path / "bin", "#!/bin/sh\n")
    assert promtool.find(None, [built]) == program


def test_of_the_test_bed_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for age, name in enumerate(("new", "old")):
        folder = tmp_path / "kubevirt-policy-testbed" / name
        folder.mkdir(parents=True)
        os.utime(_program(folder, ""), (1000 - age, 1000 - age))
    assert [path.parent.name for path in testbed.promtools()] == ["new", "old"]


def test_an_installed_program_knows_no_test_bed(tmp_path: Path) -> None:
    assert testbed.promtools(tmp_path) == ()
    assert "test bed" not in testbed.advice(tmp_path)
    assert "python -m tests.testbed.build prometheus" in testbed.advice()


def test_no_program(tmp_path: Path) -> None:
    with pytest.raises(promtool.CannotStart, match="cannot be run: Exec format error"):
        promtool.check_rules(_program(tmp_path, "\0"), tmp_path / "rules.yaml", [])


@pytest.mark.parametrize(("number", "name"), [("KILL", "SIGKILL"), ("40", "40")])
def test_ended_by_a_signal(number: str, name: str, tmp_path: Path) -> None:
    ended = promtool.check_rules(_program(tmp_path, f"#!/bin/sh\nkill -{number} $$\n"), tmp_path / "rules.yaml", [])
    assert ended == promtool.Ended(True, (f"promtool was ended by the signal {name}",))
