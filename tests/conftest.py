"""What all tests share."""

import pytest

pytest_plugins = ["tests.testbed.fixtures"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="write into tests/cases what the program does")
