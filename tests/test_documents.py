"""Reading: how much of a file is read."""

from __future__ import annotations

import pytest

from renderer import documents
from renderer.documents.limits import MAX_DOCUMENTS


@pytest.mark.parametrize("one", ["---\n", "---\na: 1\n", "---\n# nothing\n---\r"])
def test_documents_of_a_file_are_bounded(one: str) -> None:
    """Empty ones as well, which cost time and hold nothing."""
    read = documents.read("many.yaml", one.encode() * (MAX_DOCUMENTS + 1))
    assert [(finding.code, finding.message) for finding in read.findings] == [
        ("policy/limit", f"the file has more than {MAX_DOCUMENTS} documents")
    ]


def test_as_many_documents_as_are_allowed() -> None:
    read = documents.read("many.yaml", b"---\na: 1\n" * MAX_DOCUMENTS)
    assert len(read.documents) == MAX_DOCUMENTS
    assert not read.findings
