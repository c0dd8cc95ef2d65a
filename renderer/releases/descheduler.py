"""The releases of the upstream descheduler that the tables know."""

from __future__ import annotations

MINORS = tuple(f"0.{minor}" for minor in range(28, 37))
