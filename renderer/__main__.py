"""The command line: arguments to one command to an exit code.  The only place that catches what should not happen."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from contextlib import suppress

BUG = 3
CANNOT_RUN = 2
INTERRUPTED = 130
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Why a stream takes no more; an error about a file of ours has its name, and is caught where the file is written."""


def main() -> int:
    """Runs the command that `sys.argv` names and exits with its code: 0 clean, 1 findings, 2 could not run, 3 a bug."""
    try:
        gc.disable()  # one short job: nothing to collect that the end of the process does not free
        _open_streams()
        code = _flushed(run(sys.argv[1:]))
    except KeyboardInterrupt:  # while the program itself is still being loaded, or at its very end
        code = INTERRUPTED
    sys.exit(code)


def _open_streams() -> None:
    """Closed streams lead nowhere, so that no file that we open takes their number and gets our messages."""
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            handle = os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            if number:
                setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace"))
        elif number and isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character must not end the job
            stream.reconfigure(errors="backslashreplace")


def _flushed(code: int) -> int:
    """The exit code, or that of a report that did not get out."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _silence()
            return code or 1
        except OSError as error:
            return _not_reported(error)
        except ValueError:  # closed by then
            pass
    return code


def run(arguments: list[str]) -> int:
    """The exit code of one command line."""
    try:
        import click  # here, so that an interrupt while they are loaded ends like any other

        from renderer.commands import cli
    except KeyboardInterrupt:
        return INTERRUPTED
    try:
        code = cli.main(args=arguments, prog_name="kubevirt-policy", standalone_mode=False)
        return int(code or 0)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return CANNOT_RUN
    except (click.Abort, KeyboardInterrupt):
        with suppress(OSError):
            click.echo("Interrupted; nothing is half done.", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        _silence()
        return 1
    except Exception as error:
        if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
            return _not_reported(error)
        if "--debug" in arguments:
            raise
        return _bug(arguments)


def _not_reported(error: OSError) -> int:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"Error: the output cannot be written: {error.strerror}.\n")
        sys.stderr.flush()
    _silence()
    return CANNOT_RUN


def _silence() -> None:
    """What is still in the buffers goes nowhere: Python would try, and complain, at the end of the process."""
    handle = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(handle, stream.fileno())
    os.close(handle)


def _bug(arguments: list[str]) -> int:
    import tempfile  # a tenth of what --help takes
    import traceback
    from pathlib import Path

    import click

    text = f"kubevirt-policy {' '.join(arguments)}\nPython {sys.version}\n\n{traceback.format_exc()}"
    with tempfile.NamedTemporaryFile("w", prefix="kubevirt-policy-bug-", suffix=".txt", delete=False) as file:
        file.write(text)
    error = sys.exc_info()[1]
    click.echo(
        f"Internal error: {type(error).__name__}. This is a bug of kubevirt-policy, not of your policies.", err=True
    )
    click.echo(f"Please report it with {Path(file.name)}. Files of the overlays are old or new, never half.", err=True)
    return BUG


if __name__ == "__main__":
    main()
