"""What is wrong with the address of a Prometheus, beyond what its pattern refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from renderer.model import Origin, Problem
from renderer.words import shown

_HIGHEST = 65535
_FOREIGN = re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!&'()*+,;=%]")
"""What an address cannot hold (RFC 3986, 2), and `$`, with which Flux begins what it substitutes."""


def check(url: str, at: Origin) -> Iterator[Problem]:
    """Signs that no address has, credentials, and ports that do not exist."""
    name = _name(at)
    if foreign := "".join(dict.fromkeys(_FOREIGN.findall(url))):
        message = f"{name} holds {shown(foreign)}, which no address does"
        message += ": Flux takes ${…} for a variable of its own" if "$" in foreign else ""
        help = "Write the address without variables, and other characters percent-encoded, as in %7B."
        yield Problem("policy/value", at, message, help)
        return
    try:
        host, port = _parts(url)
    except ValueError:
        yield Problem("policy/value", at, f"{name} has brackets that enclose no IPv6 address", "Write [ADDRESS].")
        return
    if "@" in host:
        message = f"{name} has a user or a password in it, and is committed to Git"
        yield Problem("policy/value", at, message, "Remove it, and change the password; tokenSecret names a token.")
    if not host.rpartition("@")[2]:
        yield Problem(
            "policy/value", at, f"{name} names no host", "Write it as in http://prometheus.monitoring.svc:9090."
        )
    if port is not None and not _is_port(port):
        message = (
            f"{name} has port {port}, and ports are 1 to {_HIGHEST}" if port else f"{name} has a colon without a port"
        )
        yield Problem("policy/value", at, message, "Write the port of the Service, as in :9090, or none.")


def _name(at: Origin) -> str:
    """The field as the policies write it."""
    return ".".join(str(step) for step in at.path if step != "spec")


def _parts(url: str) -> tuple[str, str | None]:
    """Host with credentials, and what stands for a port.  Raises `ValueError` for brackets that do not fit."""
    netloc = urlsplit(url).netloc
    before, bracket, after = netloc.rpartition("]")
    host, colon, port = after.rpartition(":") if "@" not in after.rpartition(":")[2] else (after, "", "")
    if not colon:
        return netloc, None
    return f"{before}{bracket}{host}", port


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= _HIGHEST
