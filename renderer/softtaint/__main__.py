"""`python -m renderer.softtaint`: the job, once or for good.

Exit codes: 0 every node is as wanted; 1 some could not be written; 2 configuration or usage; 3 no samples, nothing
changed; 4 the Kubernetes API is unreachable or refuses; 5 no pass was good for longer than `staleAfterSeconds`, the
taints are removed; 6 another instance holds the Lease; 7 stopped by a signal before the end; 70 a bug.
"""

from __future__ import annotations

import argparse
import errno
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from renderer.softtaint import config, log
from renderer.softtaint.config import Config, ConfigError
from renderer.softtaint.stop import Stop, listen

CONFIGURATION: Final = 2
BUG: Final = 70
_PORTS: Final = 65535


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    stop = Stop()
    listen(stop)
    try:
        return _run(_parser().parse_args(arguments), stop)
    except ConfigError as error:
        for problem in error.problems:
            log.error("the configuration is wrong", problem=problem)
        return CONFIGURATION
    except Exception as error:  # noqa: BLE001  (nothing is to end without a line in the log)
        log.error("this is a bug", error=repr(error), traceback=traceback.format_exc())
        return BUG


def _run(given: argparse.Namespace, stop: Stop) -> int:
    chosen = _config(given)
    # What follows takes half a second to load: a wrong configuration is told before.
    from renderer.softtaint.job import Job

    with Job(chosen, given.kubeconfig, stop, alone=given.dry_run) as job:
        if given.once or chosen.run_as == "CronJob":
            return job.once()
        from renderer.softtaint.serving import serve

        try:
            return serve(job, given.port)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            raise ConfigError([f"--port {given.port}: {error.strerror}"]) from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m renderer.softtaint", description="Keeps soft taints in step with load.")
    parser.add_argument("--config", type=Path, default=Path(config.FILE), help="the file (default %(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="changes nothing, neither nodes nor the Lease")
    parser.add_argument("--once", action="store_true", help="ends after one pass, whatever the configuration says")
    parser.add_argument("--kubeconfig", type=Path, help="a cluster from outside it")
    parser.add_argument(
        "--prometheus-url", metavar="URL", help="instead of the one in the configuration, without its files"
    )
    parser.add_argument("--prometheus-ca-file", metavar="FILE", help="certificates that sign that server's")
    parser.add_argument("--prometheus-token-file", metavar="FILE", help="the bearer token for that server")
    parser.add_argument("--port", type=_port, default=config.PORT, help="of a Deployment (default %(default)s)")
    return parser


def _config(given: argparse.Namespace) -> Config:
    """The file and the flags above it.  Raises `ConfigError`."""
    try:
        found = config.decode(given.config.read_bytes())
    except OSError as error:
        raise ConfigError([f"{given.config}: {error.strerror}"]) from error
    flags = {
        "url": given.prometheus_url,
        "caFile": given.prometheus_ca_file,
        "tokenFile": given.prometheus_token_file,
    }
    chosen = {name: value for name, value in flags.items() if value is not None}
    return _asking(found, chosen) if chosen else found


def _asking(found: Config, chosen: dict[str, str]) -> Config:
    """With another Prometheus; a token is for the server that it was given with.  Raises `ConfigError`."""
    kept = {} if "url" in chosen or found.prometheus is None else msgspec.to_builtins(found.prometheus)
    try:
        server = msgspec.convert(kept | chosen, config.Prometheus)
    except msgspec.ValidationError as error:
        raise ConfigError([f"--prometheus-…: {error}"]) from error
    return config.checked(msgspec.structs.replace(found, prometheus=server))


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:6]) <= _PORTS:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 1 to {_PORTS}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
