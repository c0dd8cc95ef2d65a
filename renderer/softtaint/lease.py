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

from renderer.softtaint import config, log, moments
from renderer.softtaint.cluster import CONFLICT, NOT_FOUND, Cluster, Refused, Stopped, Unreachable
from renderer.softtaint.stop import Stop

LAST_GOOD: Final = "kubevirt-policy.dev/last-good-pass"
"""The annotation: when a pass last had samples and brought them to the nodes (RFC 3339, UTC)."""
DURATION: Final = 30
"""Seconds after which a holder that does not renew is taken for dead: a killed job does not block the next."""
_MARGIN: Final = 5
"""Seconds before that in which the holder itself writes no more: clocks differ, and a write takes time."""
_RENEW: Final = 7.0
_AGAIN: Final = 2.0
"""Seconds after a renewal that failed."""
_PATIENCE: Final = 5.0
"""Seconds that a renewal may take, all in all."""
_ATTEMPTS: Final = 5

Clock = Callable[[], datetime]


def now() -> datetime:
    return datetime.now(UTC)


class Lease:
    """What is known of it.  `identity` is new for each process.

    Only one thread at a time asks the server: that of the job until there is a `Keeper`, then the keeper's.  What the
    others read meanwhile is replaced as a whole, so that nobody waits for an answer but who asked.
    """

    def __init__(self, cluster: Cluster, where: config.Lease, clock: Clock = now) -> None:
        self._cluster = cluster
        self._clock = clock
        self._base = f"/apis/coordination.k8s.io/v1/namespaces/{where.namespace}/leases"
        self._where = where
        self._body: dict[str, Any] = {}
        self._until = time.monotonic()
        self._good: datetime | None = None
        self._noted: datetime | None = None
        self.identity = f"{socket.gethostname()}_{uuid.uuid4()}"

    @property
    def holder(self) -> str:
        """Who has it, or had it last."""
        return str(self._spec().get("holderIdentity") or "")

    @property
    def left(self) -> float:
        """Seconds that it is ours for, from the last renewal that succeeded; by a clock that nobody sets."""
        return self._until - time.monotonic()

    @property
    def last_good(self) -> datetime | None:
        """When a pass was last good, now at most: without a note of that, when the Lease was made; None where there is
        none."""
        metadata = self._body.get("metadata", {})
        noted = (metadata.get("annotations") or {}).get(LAST_GOOD)
        found = self._pending or _time(noted) or _time(metadata.get("creationTimestamp"))
        return None if found is None else min(found, self._clock())

    def note(self) -> None:
        """A pass was good: the next renewal says so."""
        self._good = self._clock()

    def look(self, end: float | None = None) -> None:
        """Reads it.  Raises what `Cluster.send` does, but where there is none."""
        try:
            self._body = self._ask("GET", self._path, end=end)
        except Refused as refused:
            if refused.status != NOT_FOUND:
                raise
            self._body = {}

    def take(self) -> bool:
        """Takes it; False where somebody else has it."""
        self._good = None
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

    def renew(self) -> bool:
        """Keeps it, by one attempt that is over before it runs out; False where somebody else has it, or had it since.

        One that was deleted is made anew.
        """
        end = min(time.monotonic() + _PATIENCE, self._until)
        self.look(end)
        if self._body and self.holder != self.identity:
            return False
        self._write(end)
        return True

    def give(self, *, good: bool) -> None:
        """Gives it back, and notes that the pass was good.  Best effort: else it runs out."""
        if self.holder != self.identity:
            return
        if good:
            self.note()
        moment = moments.rfc3339(self._clock(), "microseconds")
        spec = self._spec() | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": moment}
        self._cluster.last("PUT", self._path, self._with(self._pending) | {"spec": spec})

    @property
    def _path(self) -> str:
        return f"{self._base}/{self._where.name}"

    def _spec(self) -> dict[str, Any]:
        return dict(self._body.get("spec") or {})

    @property
    def _pending(self) -> datetime | None:
        """A good pass that the Lease does not tell of yet."""
        return None if self._good is self._noted else self._good

    def _free(self) -> bool:
        """Also where it was renewed in a future that no clock of ours will see soon: whoever did is not to be waited
        for."""
        spec = self._spec()
        if self.holder in ("", self.identity):
            return True
        renewed = _time(spec.get("renewTime"))
        lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or DURATION)
        return renewed is None or not -lasts <= self._clock() - renewed <= lasts

    def _write(self, end: float | None = None) -> None:
        asked, pending = time.monotonic(), self._pending
        moment = moments.rfc3339(self._clock(), "microseconds")
        spec = self._spec()
        if self.holder != self.identity:
            spec |= {
                "acquireTime": moment,
                "leaseTransitions": int(spec.get("leaseTransitions") or 0) + bool(self._body),
            }
        spec |= {"holderIdentity": self.identity, "leaseDurationSeconds": DURATION, "renewTime": moment}
        if self._body:
            self._body = self._ask("PUT", self._path, self._with(pending) | {"spec": spec}, end)
        else:
            metadata = {"name": self._where.name, "namespace": self._where.namespace}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
            self._body = self._ask("POST", self._base, _annotated(body, pending), end)
        self._until = asked + DURATION - _MARGIN
        self._noted = pending or self._noted

    def _with(self, good: datetime | None) -> dict[str, Any]:
        return _annotated(self._body, good)

    def _ask(self, verb: str, path: str, body: Any = None, end: float | None = None) -> dict[str, Any]:
        """Once where there is an end, by the clock that nobody sets; else with all patience."""
        if end is None:
            return self._cluster.read(verb, path, dict[str, Any], body)
        return self._cluster.read(verb, path, dict[str, Any], body, attempts=1, timeout=end - time.monotonic())


class Keeper:
    """Renews a Lease from a thread of its own, and stops the job where it is lost."""

    def __init__(self, lease: Lease, stop: Stop) -> None:
        self._lease = lease
        self._stop = stop
        self._wake = threading.Event()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            reason = self._keep()
        except Exception as error:  # noqa: BLE001  (a thread that dies in silence leaves a job that writes for ever)
            reason = repr(error)
        if reason:
            self._lose(reason)

    def _keep(self) -> str:
        """Until the end; why it is lost, nothing where it is not."""
        pause = _RENEW
        while True:
            self._wake.wait(max(min(pause, self._lease.left), 0))
            self._wake.clear()
            if self._ended:
                return ""
            if self._lease.left <= 0:
                return "it ran out"
            try:
                if not self._lease.renew():
                    return "somebody else has it"
                pause = _RENEW
            except Stopped:
                return "it ran out" if self._stop.lost else ""
            except (Refused, Unreachable) as error:
                log.warning("the Lease could not be renewed", error=str(error))
                pause = _AGAIN

    def _lose(self, reason: str) -> None:
        """First of all the job is stopped."""
        self._stop.lose()
        if not self._ended:
            log.error("the Lease is lost", reason=reason, holder=self._lease.holder)

    def hurry(self) -> None:
        """Renews it now."""
        self._wake.set()

    def end(self) -> bool:
        """Whether it has ended, and the Lease can be given back."""
        self._ended = True
        self._wake.set()
        self._thread.join(_PATIENCE + 1)
        return not self._thread.is_alive()


def _annotated(body: dict[str, Any], good: datetime | None) -> dict[str, Any]:
    if good is None:
        return body
    metadata = body["metadata"]
    annotations = (metadata.get("annotations") or {}) | {LAST_GOOD: moments.rfc3339(good)}
    return body | {"metadata": metadata | {"annotations": annotations}}


def _time(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
