"""The command line: arguments to one command to an exit code.  The only place that catches what should not happen."""

from __future__ import annotations

import gc
import io
import sys
from pathlib import Path

import click

from renderer.commands import cli
from renderer.commands.errors import CannotRun

BUG = 3


def main() -> int:
    """Runs the command that `sys.argv` names and exits with its code: 0 clean, 1 findings, 2 could not run, 3 a bug."""
    gc.disable()  # one short job: nothing to collect that the end of the process does not free
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character must not end the job
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """The exit code of one command line."""
    try:
        code = cli.main(args=arguments, prog_name="kubevirt-policy", standalone_mode=False)
        return int(code or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return CannotRun.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted; nothing is half done.", err=True)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except Exception:
        if "--debug" in arguments:
            raise
        return _bug(arguments)


def _bug(arguments: list[str]) -> int:
    import tempfile  # a tenth of what --help takes
    import traceback

    text = f"kubevirt-policy {' '.join(arguments)}\nPython {sys.version}\n\n{traceback.format_exc()}"
    with tempfile.NamedTemporaryFile("w", prefix="kubevirt-policy-bug-", suffix=".txt", delete=False) as file:
        file.write(text)
    error = sys.exc_info()[1]
    click.echo(
        f"Internal error: {type(error).__name__}. This is a bug of kubevirt-policy, not of your policies.", err=True
    )
    click.echo(f"Please report it with {Path(file.name)}; nothing was written to the overlays.", err=True)
    return BUG


if __name__ == "__main__":
    main()
