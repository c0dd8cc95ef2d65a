"""Measured product data beside the checkout; without it a laptop skips loudly, and CI fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "shared"


def facts(path: str) -> Path:
    """A file or folder of the data."""
    found = FOLDER / path
    if not found.exists():
        message = f"{found} is not there: what the products really do cannot be compared"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found
