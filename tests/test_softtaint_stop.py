"""Signals reach the job wherever it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

STORM = """
import os, signal, threading, time
from renderer.softtaint.stop import Stop, listen

stop = Stop()
listen(stop)
end = time.monotonic() + 0.7

def storm():
    while time.monotonic() < end:
        os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=storm, daemon=True).start()
while time.monotonic() < end:
    stop.lose()
    stop.resume()
    stop.wait(0)
print(stop.wait(5), stop.signalled)
"""


def test_a_storm_of_signals_locks_nothing() -> None:
    """A handler that sets an event waits for ever for the lock that the main thread was interrupted with."""
    ended = subprocess.run(
        [sys.executable, "-c", STORM],
        env={"PATH": os.defpath, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
        timeout=10,
    )
    assert (ended.stdout, ended.stderr) == ("True True\n", "")
