"""The actions in the texts of alerts."""

from __future__ import annotations

import pytest

from renderer.kinds.templates import read

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


@pytest.mark.parametrize("part", ["{{", '{{ "', "{{ x ", "{{`", '{{"\\"', "{{/*", "}}", "{{}}"])
def test_long_texts(part: str) -> None:
    """Time grows with the text, not with its square."""
    read(part * (65_536 // len(part)))
