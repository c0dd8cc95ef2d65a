"""The actions in the texts of alerts."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from renderer.kinds.templates import MOST, faults, functions, read

ACTIONS = {
    "plain": [],
    "{{ $value }} and {{.Labels.a|x}}": [" $value ", ".Labels.a|x"],
    '{{ f "}} {{ g" `}}` }}': [" f _________ ____ "],
    "{{/* a word */}}": [" " * 12],
    "{{- /* a }} word */ -}}": [" " * 19],
    '{{ "a\\"b" }}': [" ______ "],
    "{ a } } {": [],
    "a }} b": [],
    '{"a": {"b": "c"}}': [],
    "{{ a } b }}": [" a } b "],
}


@pytest.mark.parametrize("text", ACTIONS)
def test_actions(text: str) -> None:
    found = read(text)
    assert [action.text.replace("\0", "_") for action in found.actions] == ACTIONS[text]
    assert all(text[action.offset - 2 : action.offset] == "{{" for action in found.actions)
    assert all(text.startswith("}}", action.offset + len(action.text)) for action in found.actions)


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
    '⟦{{⟧ "a }}': "no counterpart",
    "{{ $value ⟦*⟧ 100 }}": "do not compute",
    "{{ if $value ⟦>⟧ 1 }}a{{ end }}": "gt and ge",
    "{{ $value⟦=⟧=1 }}": "no part",
    "{{ $labels⟦[⟧`a`] }}": "no part",
    "{{ printf `%s %s` $labels.a⟦,⟧ $labels.b }}": "blanks",
    "{{ if and ⟦(⟧gt $value 1.0 (lt $value 2.0) }}x{{ end }}": "no counterpart",
    "{{ (1) ⟦)⟧ }}": "no counterpart",
    "{{ (⟦)⟧ }}": "nothing",
    "{{ ⟦if⟧ }}x{{ end }}": "lacks a value",
    "{{ ⟦range⟧ }}x{{ end }}": "lacks a value",
    "{{ if true }}{{ else }}{{ ⟦else⟧ }}{{ end }}": "of its own",
    "{{⟦{⟧ $value }}}": "no part",
    "{{ ⟦|⟧ humanize }}": "missing",
    "{{ ⟦/⟧* c */ }}": "no part",
    "{{⟦-⟧$value }}": "no part",
    '{{ "⟦\\d⟧" }}': "escapes nothing",
    "{{ if true }}{{ $y := 1 }}{{ end }}{{ ⟦$y⟧ }}": "no variable",
    "{{ range $i, $e := query `up` }}{{ $i }}{{ end }}{{ ⟦$i⟧ }}": "no variable",
    "{{ $labels⟦.1⟧ }}": "no value",
    "{{ .⟦.⟧ }}": "no value",
    "{{ $⟦.⟧ }}": "no value",
    "{{ ⟦;⟧ }}": "no part",
    "{{ $x ⟦:=⟧ }}": "missing",
    "{{ if true }}{{ ⟦define⟧ `x` }}{{ end }}{{ end }}": "within a block",
    "{{ $labels.foo⟦-⟧bar }}": "no part",
    "{{ ⟦#⟧ c }}": "no part",
}


@pytest.mark.parametrize("marked", FAULTS)
def test_faults(marked: str) -> None:
    before, _, rest = marked.partition("⟦")
    wrong, _, _ = rest.partition("⟧")
    (fault,) = faults(before + rest.replace("⟧", ""))
    assert (fault.offset, fault.length) == (len(before), len(wrong))
    assert FAULTS[marked] in f"{fault.message} {fault.help}"


VALID = [
    "{{ $x := 3 }}{{ $x }}{{ $x = 4 }}",
    "{{ range $i, $e := query `up` }}{{ $i }}{{ break }}{{ else }}{{ end }}",
    "{{- if $labels.a -}}{{ else if $value }}{{- else -}}{{ end }}",
    "{{ with $externalLabels }}{{ .a }}{{ $.Value }}{{ end }}{{ $externalURL }}",
    "{{ define `x` }}{{ end }}{{ template `x` }}{{/* ' if */}}{{ 'x' }}{{ '\\n' }}",
    '{{ printf "end if $foo" }}{{ $value | }}',
    '{"a": {"b": "c"}} }}',
    '{{ with $x := "\\n\\u00e9" }}{{ $x }}{{ else with 1 }}{{ end }}',
    "{{ if (and (gt $value 1.5) (lt $value -2e3)) | not }}{{ .Labels.a_b }}{{ $labels.x }}{{ end }}",
    "{{ (index $labels `a`) }}{{ (printf `%s` .).x }}{{- /* c */ -}}",
    "{{ if true }}{{ $y := 1 }}{{ $y }}{{ end }}{{ $z := 1 }}{{ if true }}{{ $z }}{{ $z = 2 }}{{ end }}",
    "{{ 0x1F }} {{ 1_000 }} {{ .5 }} {{ nil | print }}{{ block `b` . }}{{ $ }}{{ end }}",
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
    "part",
    [
        "{{",
        '{{ "',
        "{{ x ",
        "{{`",
        '{{"\\"',
        "{{/*",
        "}}",
        "{{}}",
        "{{if}}",
        "{{end}}",
        "{{$a}}",
        "{{'",
        "{{a}}",
        "{{((}}",
        "{{if 1}}{{$x:=1}}",
    ],
)
def test_long_texts(part: str) -> None:
    """Time grows with the text, not with its square."""
    text = part * (65_536 // len(part))
    assert len(faults(text)) <= MOST
    functions(text)
