"""The servers as fixtures: each is started once, for the tests of one worker.

Every test that uses one belongs into the group `servers` (`pytestmark = SERVERS`), so that all of them run in the same
worker and no server is started twice.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.testbed import build
from tests.testbed.access import Access
from tests.testbed.kubernetes import api_server
from tests.testbed.monitoring import Monitoring
from tests.testbed.monitoring import prometheus as monitoring_server

SERVERS = pytest.mark.xdist_group("servers")

Programs = Callable[[str], Path]


@pytest.fixture(scope="session")
def program(pytestconfig: pytest.Config) -> Programs:
    """The path of a program by its name, built now where it never was."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            sys.stderr.write(f"\ntest bed: {text}\n")
            sys.stderr.flush()

    def find(name: str) -> Path:
        try:
            return build.program(name, say)
        except build.NoGo as missing:
            message = f"{missing}; nothing is proven with the real {name}"
            if os.environ.get("CI"):
                pytest.fail(message)
            pytest.skip(message)

    return find


@pytest.fixture(scope="session")
def apiserver(program: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """A real API server, as its administrator sees it."""
    with api_server(program("etcd"), program("kube-apiserver"), tmp_path_factory.mktemp("kubernetes")) as access:
        yield access


@pytest.fixture(scope="session")
def prometheus(program: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitoring]:
    """A real Prometheus that scrapes what the test exposes."""
    with monitoring_server(program("prometheus"), tmp_path_factory.mktemp("prometheus")) as found:
        yield found


@pytest.fixture(scope="session")
def promtool(program: Programs) -> Path:
    """The path of promtool."""
    return program("promtool")


@pytest.fixture(scope="session")
def descheduler(program: Programs) -> Path:
    """The path of the descheduler."""
    return program("descheduler")


@pytest.fixture(scope="session")
def scheduler(program: Programs) -> Path:
    """The path of kube-scheduler."""
    return program("kube-scheduler")
