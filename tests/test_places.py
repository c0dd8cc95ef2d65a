"""The place of a part of a scalar, in every style of YAML."""

from __future__ import annotations

import pytest

from renderer import documents
from renderer.model import Origin

TEXTS = {
    "plain": "k: sum(x) + foo\n",
    "plain over two lines": "k: sum(x)\n  + foo\n",
    "single quotes": "k: 'it''s ''x'' + foo'\n",
    "single quotes over lines": "k: 'a\n\n  ''b''\n  foo'\n",
    "double quotes": 'k: "say \\"hi\\" \\u0041 \\\\ foo"\n',
    "double quotes with line ends": 'k: "a\\n\\tb foo"\n',
    "double quotes over lines": 'k: "a \\\n  b\n  foo"\n',
    "literal": "k: |\n  sum(x)\n    + foo\n",
    "literal that begins blank": "k: |\n\n  sum(x)\n\n  + foo\n",
    "literal with an indicator": "k: |2-\n    a\n  foo\n",
    "folded": "k: >-\n  a\n  b\n\n  foo\n",
    "flow": "{j: [1, 2], k: a + foo}\n",
    "after a document": "a: foo\n---\nk: >\n   a foo\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_place(text: str) -> None:
    document = documents.read("file.yaml", text.encode()).documents[-1]
    offset = document.data["k"].index("foo")
    place = documents.within(Origin(document, ("k",)), offset, 3).position
    line = text.splitlines()[place.line - 1]
    assert line[place.column - 1 :][: place.length] == "foo"
    assert place.line == text.splitlines().index(line) + 1


def test_the_end_of_a_text_and_no_text() -> None:
    document = documents.read("file.yaml", b"k: abc\nm: {a: 1}\n").documents[0]
    assert documents.within(Origin(document, ("k",)), 3).position.line >= 1
    assert documents.within(Origin(document, ("m",)), 3, 2).position.line == 2
    assert documents.within(Origin(document, ("none",)), 3, 2).position.line == 1
