"""What keeps a command from running at all."""

from __future__ import annotations

import click


class CannotRun(click.ClickException):
    """Usage, configuration, a missing tool, no policies: exit 2, and the message says what to do."""

    exit_code = 2
