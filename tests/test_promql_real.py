"""What we say of expressions, held against the real promtool."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from renderer.promql import Fault, parse

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
    "smoothed",
    'anchored{a="b"}',
    "rate(x[5m] smoothed)",
    "rate(smoothed[5m] @ start() smoothed)",
    "sum by (smoothed, anchored, fill) (fill_left)",
    "x </ 5 + 3",
    "x >/ 5 > 1_000.5",
    "x @ 1e18",
    "time() - x > 0s",
    "x offset 0s + x offset -0m",
    " or ".join(f'x{{a="{number}"}}' for number in range(200)),
    "x offset 5m smoothed",
    "x @ -5 anchored",
    "0x_1F_ff + 1_0.0_5e1",
    "x @ -9223372036854775000",
    "rate(x[300]) + x offset 300 + 5m",
    '{"a.b"} + sum by ("c.d") (x)',
    "x{or='a', and=\"b\"}",
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
    "1_",
    "0_.5",
    "5_m",
    "1__0",
    "x > 51_000m",
    "5anchored",
    "1 smoothed",
    "x < Inf anchored",
    "sum(x) anchored",
    "x @ 1e30",
    "x @ -9223372036854775808",
    "rate(x[-5m])",
    "sum(x) smoothed",
    "rate(x[1h 30m])",
    "atan2",
    "x offset 5m (y)",
    "x offset start()",
    'x{a="b" or a="c"}',
    'x{a="b"}{c="d"}',
]


RELEASE = (3, 16)
"""Of the promtool in the test bed."""


def faults(text: str) -> list[Fault]:
    """Those that are told of a cluster with that release as errors."""
    return [fault for fault in parse(text).faults if fault.needs is None or fault.needs > RELEASE]


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
    assert faults(text) == []


@pytest.mark.parametrize("text", INVALID)
def test_invalid(text: str, refused: dict[str, str]) -> None:
    assert text in refused
    assert faults(text) != []
