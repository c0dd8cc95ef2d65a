"""Comments that ignore findings, in texts made to take long."""

from __future__ import annotations

from time import process_time

import pytest

from renderer import ignores
from renderer.findings import SEVERITIES


@pytest.mark.parametrize("row", ["#", "# ", " #", "#\t", "# k", "#kpolicy "])
def test_a_long_row_of_marks(row: str) -> None:
    text = row * (100_000 // len(row))
    start = process_time()
    ignores.MARK.search(text.encode())
    ignores.apply([], {"policies/a.yaml": f"a: 1 {text}"}, SEVERITIES.__getitem__)
    assert process_time() - start < 2
