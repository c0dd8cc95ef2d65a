"""What keeps a command from running at all."""

from __future__ import annotations

import sys
from typing import IO, Any

import click

from renderer.model import printable


class CannotRun(click.ClickException):
    """Usage, configuration, a missing tool, no policies: exit 2, and the message says what to do."""

    exit_code = 2

    def format_message(self) -> str:
        return "\n".join(map(printable, self.message.split("\n")))

    def show(self, file: IO[Any] | None = None) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")  # a line of progress may stand there
        super().show(file)
