"""JSON lines on standard error, one event each."""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from renderer.softtaint import moments

_LOCK: Final = threading.Lock()
_ENCODER: Final = msgspec.json.Encoder()


def info(message: str, **fields: Any) -> None:
    _line("info", message, fields)


def warning(message: str, **fields: Any) -> None:
    _line("warning", message, fields)


def error(message: str, **fields: Any) -> None:
    _line("error", message, fields)


def _line(level: str, message: str, fields: dict[str, Any]) -> None:
    """A log that nobody takes any more is no reason to stop."""
    now = moments.rfc3339(datetime.now(UTC), "milliseconds")
    line = _text({"time": now, "level": level, "message": message, **fields})
    try:
        with _LOCK:
            sys.stderr.write(line + "\n")
    except (AttributeError, OSError, ValueError):  # closed before the start, or since
        pass


def _text(event: dict[str, Any]) -> str:
    try:
        return _ENCODER.encode(event).decode()
    except (UnicodeError, TypeError, RecursionError):  # halves of characters, from a file or the command line
        return json.dumps(event, default=repr)
