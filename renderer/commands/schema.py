"""`schema`: the JSON Schemas of the policy kinds."""

from __future__ import annotations

import json
from pathlib import Path

import click

from renderer.commands.errors import CannotRun
from renderer.kinds import KINDS
from renderer.kinds.schema import schema


@click.command("schema")
@click.argument("kind", required=False)
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write <kind>.json for every kind there.",
)
def command(kind: str | None, directory: Path | None) -> int:
    """Print the JSON Schema of KIND, or write those of all kinds to a directory.

    \b
    An editor completes and checks a policy whose file begins with this line:
      # yaml-language-server: $schema=<path>/RateLimitPolicy.json
    """
    if (kind is None) == (directory is None):
        raise CannotRun(f"give either a kind ({', '.join(KINDS)}) or --directory.")
    if kind is not None:
        if kind not in KINDS:
            raise CannotRun(f"there is no kind {kind}. Known: {', '.join(KINDS)}.")
        click.echo(_text(kind), nl=False)
    if directory is not None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for name in KINDS:
                (directory / f"{name}.json").write_text(_text(name), encoding="utf-8", newline="\n")
        except OSError as error:
            raise CannotRun(f"{directory} cannot be written: {error.strerror}") from None
    return 0


def _text(kind: str) -> str:
    return json.dumps(schema(kind), indent=2, ensure_ascii=False) + "\n"
