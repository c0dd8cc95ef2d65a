"""The Lease: one instance writes at a time, and all of them know when a pass was last good.

It is what survives the job: a single object in the job's own namespace, so that nothing has to be kept on nodes.
"""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from renderer.softtaint import config, log
from renderer.softtaint.cluster import CONFLICT, NOT_FOUND, Cluster, Refused, Stopped, Unreachable
from renderer.softtaint.stop import Stop

LAST_GOOD: Final = "kubevirt-policy.dev/last-good-pass"
"""The annotation: when a pass last had samples and brought them to the nodes (RFC 3339, UTC)."""
DURATION: Final = 30
"""Seconds after which a holder that does not renew is taken for dead: a killed job does not block the next."""
_RENEW: Final = 7.0
_ATTEMPTS: Final = 5
_PATIENCE: Final = 5.0
"""Seconds that a renewal may take at the very end."""

Clock = Callable[[], datetime]


def now() -> datetime:
    return datetime.now(UTC)


class Lease:
    """What is known of it.  `identity` is new for each process."""

    def __init__(self, cluster: Cluster, where: config.Lease, clock: Clock = now) -> None:
        self._cluster = cluster
        self._clock = clock
        self._base = f"/apis/coordination.k8s.io/v1/namespaces/{where.namespace}/leases"
        self._where = where
        self._body: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"

    @property
    def holder(self) -> str:
        """Who has it, or had it last."""
        return str(self._spec().get("holderIdentity") or "")

    @property
    def last_good(self) -> datetime | None:
        """When a pass was last good: without a note of that, when the Lease was made; None where there is none."""
        metadata = self._body.get("metadata", {})
        noted = (metadata.get("annotations") or {}).get(LAST_GOOD)
        return _time(noted) or _time(metadata.get("creationTimestamp"))

    def look(self) -> None:
        """Reads it.  Raises what `Cluster.send` does, but where there is none."""
        try:
            self._body = self._decoded("GET", self._path)
        except Refused as refused:
            if refused.status != NOT_FOUND:
                raise
            self._body = {}

    def take(self) -> bool:
        """Takes or renews it; False where somebody else has it."""
        with self._lock:
            for _ in range(_ATTEMPTS):
                self.look()
                if not self._free():
                    return False
                try:
                    self._write()
                except Refused as refused:
                    vanished = refused.status == NOT_FOUND and self._body
                    if refused.status != CONFLICT and not vanished:
                        raise
                else:
                    return True
            return False

    def give(self, *, good: bool) -> None:
        """Gives it back, and notes that the pass was good.  Best effort: else it runs out."""
        with self._lock:
            if self.holder != self.identity:
                return
            spec = self._spec() | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _micro(self._clock())}
            self._cluster.last("PUT", self._path, self._noted(good=good) | {"spec": spec})

    def note(self) -> None:
        """Notes that a pass was good, and keeps it."""
        with self._lock:
            self._body = self._noted(good=True)
            self._write()

    @property
    def _path(self) -> str:
        return f"{self._base}/{self._where.name}"

    def _spec(self) -> dict[str, Any]:
        return dict(self._body.get("spec") or {})

    def _free(self) -> bool:
        spec = self._spec()
        if self.holder in ("", self.identity):
            return True
        renewed = _time(spec.get("renewTime"))
        lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or DURATION)
        return renewed is None or renewed + lasts < self._clock()

    def _write(self) -> None:
        moment = _micro(self._clock())
        spec = self._spec()
        if self.holder != self.identity:
            spec |= {
                "acquireTime": moment,
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + bool(self._body),
            }
        spec |= {"holderIdentity": self.identity, "leaseDurationSeconds": DURATION, "renewTime": moment}
        if self._body:
            self._body = self._decoded("PUT", self._path, self._body | {"spec": spec})
        else:
            metadata = {"name": self._where.name, "namespace": self._where.namespace}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            self._body = self._decoded("POST", self._base, body)

    def _noted(self, *, good: bool) -> dict[str, Any]:
        if not good:
            return self._body
        metadata = self._body["metadata"]
        moment = self._clock().astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        annotations = (metadata.get("annotations") or {}) | {LAST_GOOD: moment}
        return self._body | {"metadata": metadata | {"annotations": annotations}}

    def _decoded(self, verb: str, path: str, body: Any = None) -> dict[str, Any]:
        return self._cluster.read(verb, path, dict[str, Any], body)


class Keeper:
    """Renews a Lease from a thread of its own, and stops the job where it is lost."""

    def __init__(self, lease: Lease, stop: Stop) -> None:
        self._lease = lease
        self._stop = stop
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        renewed = time.monotonic()
        while not self._ended.wait(_RENEW):
            try:
                if not self._lease.take():
                    break
                renewed = time.monotonic()
            except Stopped:
                return
            except (Refused, Unreachable) as error:
                if time.monotonic() - renewed > DURATION - _RENEW:
                    break
                log.warning("the Lease could not be renewed", error=str(error))
        if not self._ended.is_set():
            log.error("the Lease is lost", holder=self._lease.holder)
            self._stop.lose()

    def end(self) -> bool:
        """Whether it has ended, and the Lease can be given back."""
        self._ended.set()
        self._thread.join(_PATIENCE)
        return not self._thread.is_alive()


def _time(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _micro(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
