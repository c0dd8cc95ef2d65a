"""The Deployment: passes at an interval while the Lease is held, with /metrics, /healthz and /readyz."""

from __future__ import annotations

import random
import socket
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from renderer.softtaint import log
from renderer.softtaint.job import Job
from renderer.softtaint.metrics import Metrics
from renderer.softtaint.report import Outcome, Report

_STANDBY: Final = 10.0
"""Seconds until an instance without the Lease, or one that the API server does not answer, tries again."""
_JITTER: Final = 0.1
"""Part of the interval by which passes of many clusters drift apart."""
_HANGING: Final = 900.0
"""Seconds beyond the interval after which a loop that has not turned is taken for dead."""


class Service:
    """The loop, and what its probes are told."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.metrics = Metrics()
        self.ready = False
        """Whether the API server answered last; an instance that waits for the Lease is ready to take over."""
        self._turned = time.monotonic()
        self._said: Outcome | None = None

    @property
    def alive(self) -> bool:
        return time.monotonic() - self._turned < self.job.config.every_seconds + _HANGING

    def run(self) -> None:
        """Until a signal."""
        stop = self.job.stop
        while not stop.signalled:
            self._turned = began = time.monotonic()
            report = self._turn()
            soon = self.job.waits or report.outcome is Outcome.NO_API
            interval = _STANDBY if soon else float(self.job.config.every_seconds)
            interval *= random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  (no secret)
            stop.wait(max(began + interval - time.monotonic(), 0))

    def _turn(self) -> Report:
        failed = self.job.acquire()
        self.metrics.leader.set(self.job.holds)
        report = self.job.run() if failed is None else failed
        if report.good:
            self.job.note()
        self.ready = report.outcome is not Outcome.NO_API
        self.metrics.record(report, ran=failed is None)
        self.metrics.leads(not self.job.waits, holds=self.job.holds)
        self.metrics.good_at(self.job.lease.last_good)
        if (self._said, report.outcome) != (Outcome.HELD, Outcome.HELD):  # said once, while another one works
            self.job.tell(report)
        self._said = report.outcome
        return report


def serve(job: Job, port: int) -> int:
    """The exit code: 0, as a Deployment ends by a signal only."""
    service = Service(job)
    server = _Server(("", port), _Handler, service)
    thread = threading.Thread(target=server.serve_forever, name="http", daemon=True)
    thread.start()
    log.info("started", port=port, instance=job.lease.identity)
    try:
        service.run()
    finally:
        job.release(good=False)
        server.shutdown()
        server.server_close()
    log.info("stopped", instance=job.lease.identity)
    return 0


class _Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], service: Service) -> None:
        self.service = service
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """For both families: pods have either."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10

    def do_GET(self) -> None:
        service = self.server.service
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(HTTPStatus.OK, service.metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
        elif path in ("/healthz", "/readyz"):
            fine = service.alive if path == "/healthz" else service.ready
            self._answer(HTTPStatus.OK if fine else HTTPStatus.SERVICE_UNAVAILABLE, b"ok\n" if fine else b"no\n")
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"/metrics, /healthz, /readyz\n")

    def _answer(self, status: HTTPStatus, body: bytes, content: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Probes and scrapes are no events."""
