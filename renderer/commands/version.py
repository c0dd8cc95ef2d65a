"""`version`: the version of the tool and the format of its files."""

from __future__ import annotations

import click

from renderer import __version__
from renderer.header import FORMAT


@click.command("version")
def command() -> int:
    """Print the version."""
    click.echo(f"kubevirt-policy {__version__} (overlay format {FORMAT})")
    return 0
