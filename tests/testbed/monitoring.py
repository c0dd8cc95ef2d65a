"""A Prometheus that scrapes what a test says."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.testbed.kubernetes import answers
from tests.testbed.processes import serving, until

# A scrape that fails, be it of a machine that is busy, makes all series end: hence no shorter timeout.
_CONFIG = """\
global: {{scrape_interval: 5s, scrape_timeout: 5s}}
scrape_configs:
- job_name: nodes
  honor_labels: true
  static_configs:
  - targets: ["127.0.0.1:{port}"]
"""


class Exporter:
    """Answers every request with `text`, in Prometheus's exposition format."""

    def __init__(self) -> None:
        self.text = ""
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(exporter.text.encode())

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = int(self._server.server_address[1])
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@dataclass(frozen=True, slots=True)
class Monitoring:
    """A Prometheus and its only target."""

    port: int
    exporter: Exporter

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def query(self, text: str) -> list[dict[str, Any]]:
        """The series of an instant query, as Prometheus's API gives them."""
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': text})}"
        with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310  (it is ours)
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return found

    def expose(self, samples: Mapping[str, str]) -> None:
        """Put series in place of all that were there, each as `name{labels}` with its value, and see them scraped."""
        generation = str(int(self._generation()) + 1)
        lines = [f"{series} {value}" for series, value in samples.items()]
        self.exporter.text = "\n".join([*lines, f"generation {generation}", ""])
        until(lambda: self._generation() == generation, "the new series")

    def _generation(self) -> str:
        found = self.query("generation")
        return str(found[0]["value"][1]) if found else "0"


@contextmanager
def prometheus(program: Path, folder: Path) -> Iterator[Monitoring]:
    """A fresh Prometheus without series."""
    exporter = Exporter()
    config = folder / "prometheus.yml"
    config.write_text(_CONFIG.format(port=exporter.port))

    def command(port: int) -> list[str | Path]:
        return [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / f'prometheus-{port}'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ]

    try:
        with serving("prometheus", command, lambda port: answers(port, "/-/ready"), folder) as port:
            yield Monitoring(port, exporter)
    finally:
        exporter.close()
