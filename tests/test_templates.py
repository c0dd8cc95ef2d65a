"""The actions in the texts of alerts."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from renderer.kinds.templates import faults, read

ACTIONS = [
    ("plain", [], None),
    ("{{ $value }} and {{.Labels.a|x}}", [" $value ", ".Labels.a|x"], None),
    ('{{ f "}} {{ g" `}}` }}', [" f         " + "    " + "   "], None),
    ("{{/* a word */}}", [" " * 12], None),
    ('{{ "a\\"b" }}', [" " * 8], None),
    ("{ a } } {", [], None),
    ("a {{ b", [], 2),
    ("a }} b", [], 2),
    ("}} {{ a }}", [], 0),
    ("{{ a }} }}", [" a "], 8),
    ('{{ "a }}', [], 0),
    ("{{ a } b }}", [" a } b "], None),
]


@pytest.mark.parametrize(("text", "actions", "stray"), ACTIONS)
def test_actions(text: str, actions: list[str], stray: int | None) -> None:
    found = read(text)
    assert [action.replace(" ", "") for _, action in found.actions] == [one.replace(" ", "") for one in actions]
    assert all(text[at - 2 : at] == "{{" for at, _ in found.actions)
    assert all(text.startswith("}}", at + len(action)) for at, action in found.actions)
    assert found.stray == stray


FAULTS = {
    "{{ ⟦$foo⟧ }}": "no variable $foo",
    "{{ ⟦if⟧ true }}": "has no end",
    "{{- ⟦range⟧ query `x` }}{{ if . }}{{ end }}": "has no end",
    "{{ ⟦end⟧ }}": "end without",
    "{{ ⟦else⟧ }}": "else without",
    "{{ define `x` }}{{ ⟦else⟧ }}{{ end }}": "else without",
    "{{ if true }}{{ ⟦break⟧ }}{{ end }}": "break without range",
    "a ⟦{{ }}⟧": "says nothing",
    "⟦{{- -}}⟧": "says nothing",
    "{{ ⟦'⟧ab' }}": "double quotes",
    "{{ x ⟦$y⟧ }}{{ $y := 1 }}": "no variable $y",
    "a ⟦{{⟧ $value": "no counterpart",
}


@pytest.mark.parametrize("marked", FAULTS)
def test_faults(marked: str) -> None:
    before, _, rest = marked.partition("⟦")
    wrong, _, _ = rest.partition("⟧")
    (fault,) = faults(before + rest.replace("⟧", ""))
    assert (fault.offset, fault.length) == (len(before), len(wrong))
    assert FAULTS[marked] in fault.message


VALID = [
    "{{ $x := 3 }}{{ $x }}{{ $x = 4 }}",
    "{{ range $i, $e := query `up` }}{{ $i }}{{ break }}{{ else }}{{ end }}",
    "{{- if $labels.a -}}{{ else if $value }}{{- else -}}{{ end }}",
    "{{ with $externalLabels }}{{ .a }}{{ $.Value }}{{ end }}{{ $externalURL }}",
    "{{ define `x` }}{{ end }}{{ template `x` }}{{/* ' if */}}{{ 'x' }}{{ '\\n' }}",
    '{{ printf "end if $foo \'" }}',
]


@pytest.mark.parametrize("text", VALID)
def test_no_faults(text: str) -> None:
    assert list(faults(text)) == []


def test_what_promtool_says(promtool: Path, tmp_path: Path) -> None:
    """Exactly those that have faults here are refused."""
    texts = [*VALID, *(marked.replace("⟦", "").replace("⟧", "") for marked in FAULTS)]
    rules = [{"alert": f"a{number}", "expr": "x", "annotations": {"a": text}} for number, text in enumerate(texts)]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}))
    ended = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    refused = {int(number) for number in re.findall(r'"a(\d+)": annotation "a": template', ended.stderr)}
    assert refused == set(range(len(VALID), len(texts)))


@pytest.mark.parametrize(
    "part", ["{{", '{{ "', "{{ x ", "{{`", '{{"\\"', "{{/*", "}}", "{{}}", "{{if}}", "{{end}}", "{{$a}}", "{{'"]
)
def test_long_texts(part: str) -> None:
    """Time grows with the text, not with its square."""
    text = part * (65_536 // len(part))
    read(text)
    list(faults(text))
