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


def test_many_broken_documents_are_read_quickly_and_all_told() -> None:
    read = documents.read("many.yaml", b"---\n{a: 1\n" * MAX_DOCUMENTS)
    assert [finding.position.line for finding in read.findings] == [
        2 * number for number in range(1, MAX_DOCUMENTS + 1)
    ]
    assert not read.whole


def test_too_many_documents_are_not_read_one_by_one() -> None:
    read = documents.read("many.yaml", b"---\n{a: 1\n" * (MAX_DOCUMENTS + 1))
    assert len(read.findings) == 1


def test_a_long_file_is_not_given_to_the_slow_reader_in_parts() -> None:
    url = b"---\n{url: https://example.com}\n"
    assert documents.read("short.yaml", url * 2 + b"---\n{\n").findings[0].position.line == 6
    read = documents.read("long.yaml", url * 3000)
    assert len(read.findings) == 3000
