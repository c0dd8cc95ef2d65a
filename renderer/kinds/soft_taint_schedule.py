"""Times between two passes in cron's words, which know parts of an hour and of a day only."""

from __future__ import annotations

_MINUTE, _HOUR = 60, 3600
_TIMES = (
    *(_MINUTE * minutes for minutes in range(1, 60) if 60 % minutes == 0),
    *(_HOUR * hours for hours in range(1, 25) if 24 % hours == 0),
)


def schedule(seconds: int) -> str | None:
    """The schedule that comes round every so many seconds; None where cron has no words for it."""
    if seconds not in _TIMES:
        return None
    if seconds < _HOUR:
        return "* * * * *" if seconds == _MINUTE else f"*/{seconds // _MINUTE} * * * *"
    hours = seconds // _HOUR
    return {1: "0 * * * *", 24: "0 0 * * *"}.get(hours, f"0 */{hours} * * *")


def nearest(seconds: int) -> list[str]:
    """The next shorter and the next longer time that cron has words for, as durations."""
    below = [time for time in _TIMES if time < seconds][-1:]
    above = [time for time in _TIMES if time > seconds][:1]
    return [f"{time // _HOUR}h" if time >= _HOUR else f"{time // _MINUTE}m" for time in (*below, *above)]
