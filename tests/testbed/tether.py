"""Becomes another program that ends when its parent does: `python tether.py PARENT PROGRAM ARGUMENT…`.

Run by path, so that it starts fast: it may import nothing but the standard library.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, *command = sys.argv[1:]
    if sys.platform == "linux":
        # Kept across exec.  Elsewhere a test run that is killed outright leaves its servers behind.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):
            sys.exit(1)  # it ended before the line above
    os.execv(command[0], command)  # noqa: S606  (no shell is wanted)


main()
