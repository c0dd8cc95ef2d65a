"""Runs a piece of code as somebody whom file modes bind, which they do not for root."""

import os
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parents[1]
DROP = """
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


def run(root: Path, code: str) -> str:
    """What `code` prints, in the folder `root`, which is opened to all.  From its line `#drop` on it is nobody."""
    root.chmod(0o777)
    script = "import os\nfrom pathlib import Path\n" + code.replace("#drop\n", DROP)
    env = {**os.environ, "PYTHONPATH": os.fspath(SOURCES)}
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
