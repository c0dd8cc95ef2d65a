"""Moments as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(moment: datetime, precision: str = "seconds") -> str:
    """In UTC, with a `Z`; `precision` as `datetime.isoformat` calls it."""
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
