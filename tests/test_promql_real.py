"""What we say of expressions, held against the real promtool."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from renderer.promql import parse

VALID = [
    "x{a=~`\\d+`}",
    'label_replace(x, "a", `$1`, "b", `(\\d+)\\.x`)',
    'x{a=~"(?<n>b)(?P<m>c)"}',
    'x{a=~"a{,3}{"}',
    'x{a=~"[a&&b]"}',
    'x{a=~"[^a-]|\\\\pN|[[:alpha:]]|\\\\Q(\\\\E|\\\\z"}',
    'x{a=~"b\\\\\\\\C"}',
    'x{a=~"(?i:b)"}',
    '{a!~".*"}',
    '{a=~".+"}',
    "{a=~`\\w`}",
    'x{a=~"%s"}' % ("a?" * 500),
]
INVALID = [
    'x{a=~"\\\\C"}',
    'x{a=~"[[:foo:]]"}',
    'x{a=~"((((b{100}){100}){100}))"}',
    'x{a=~"b{1001}"}',
    'x{a=~"\\\\p{Foo}"}',
    'x{a=~"(?=b)"}',
    'x{a!~"b**"}',
    'x{a=~"(?x) b"}',
    'x{a=~"\\\\u0041"}',
    'x{a=~"\\\\Z"}',
    'x{a=~"\\d"}',
    '{a=~".*"}',
    "{a=~`.*`}",
    '{a=~""}',
    '{a=~"(?i:x*)"}',
    '{a!~".+"}',
    '{a!~"(?s:.+)"}',
]


@pytest.fixture(scope="module")
def refused(promtool: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What promtool says of those that it refuses."""
    texts = [*VALID, *INVALID]
    rules = [{"record": f"a:{number}", "expr": text} for number, text in enumerate(texts)]
    file = tmp_path_factory.mktemp("rules") / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}))
    ended = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    said = re.findall(r'"a:(\d+)": could not parse expression: (.*)', ended.stderr)
    return {texts[int(number)]: words for number, words in said}


@pytest.mark.parametrize("text", VALID)
def test_valid(text: str, refused: dict[str, str]) -> None:
    assert text not in refused
    assert [fault for fault in parse(text).faults if fault.needs is None] == []


@pytest.mark.parametrize("text", INVALID)
def test_invalid(text: str, refused: dict[str, str]) -> None:
    assert text in refused
    assert [fault for fault in parse(text).faults if fault.needs is None] != []
