"""What becomes of a file of unit tests."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from renderer.promtool import with_rules

FILES = {
    "none": "evaluation_interval: 1m\ntests: [1]\n",
    "first": "rule_files:\n- a.yaml\n- b.yaml\n# a comment\nevaluation_interval: 1m\ntests: [1]\n",
    "last": "evaluation_interval: 1m\ntests: [1]\nrule_files:\n  - a.yaml",
    "flow": "evaluation_interval: 1m\nrule_files: [a.yaml, \n  b.yaml]\ntests: [1]\n",
    "quoted": '"rule_files" : [a.yaml]\nevaluation_interval: 1m\ntests: [1]\n',
    "a marker": "# about\n---\nrule_files: []\nevaluation_interval: 1m\ntests: [1]\n",
    "JSON": '{"rule_files": ["a.yaml"], "evaluation_interval": "1m", "tests": [1]}',
    "CRLF": "rule_files:\r\n- a.yaml\r\nevaluation_interval: 1m\r\ntests: [1]\r\n",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_rule_files(text: str) -> None:
    found: Any = yaml.safe_load(with_rules(text, ["x.yaml", 'odd "name".yaml']))
    assert found == {"rule_files": ["x.yaml", 'odd "name".yaml'], "evaluation_interval": "1m", "tests": [1]}


def test_the_rest_stays_as_it_is() -> None:
    rest = "tests:\n- interval: 1m\n  # 2e9 is a number there\n  x: [2e9, .inf, 0x10]\n  rule_files: inner\n"
    assert with_rules(rest, ["x.yaml"]) == 'rule_files: ["x.yaml"]\n' + rest


def test_json_that_is_none() -> None:
    with pytest.raises(json.JSONDecodeError):
        with_rules("{a: 1}", [])


@pytest.mark.parametrize("text", ["", "evaluation_interval: 1m\n", "tests: []\n", "a:\n  tests: [1]\n", "{}"])
def test_no_tests(text: str) -> None:
    with pytest.raises(ValueError, match="no tests"):
        with_rules(text, [])
