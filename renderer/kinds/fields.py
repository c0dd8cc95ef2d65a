"""The types of policy fields: what a value may be, and what to say when it is not.

Models are msgspec structs.  Their JSON Schema, which editors use as well, carries these titles; where a
value breaks a rule, `EXPLANATIONS` finds the words for it by title.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from renderer.releases.operator_metrics import METRICS
from renderer.values import Value
from renderer.words import did_you_mean, shown


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A mapping of known keys, spelled in camelCase, with values of exactly the stated types."""


QPS_MIN, QPS_MAX = 2, 16_777_216
"""KubeVirt's leader election needs 2 (its PR #6101); a 32-bit float holds every integer up to 2**24."""
BURST_MIN, BURST_MAX = 3, 2_147_483_647
_UNTRIED = "KubeVirt was never tested with less"

_LABEL_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_NAME = rf"{_DNS_LABEL}(\.{_DNS_LABEL})*"
_END = r"(?!\n)$"  # Python's $ also matches before a final line feed
_HOST = r"([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?"
_COMPONENT = r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*"
_DURATION = re.compile(r"([0-9]{1,6})([hms])")
_DIGITS = 6
_SECONDS = {"h": 3600, "m": 60, "s": 1}

Qps: TypeAlias = Annotated[
    int, Meta(ge=QPS_MIN, le=QPS_MAX, title="qps", description="API calls a second, sustained.", examples=[200])
]
Burst: TypeAlias = Annotated[
    int, Meta(ge=BURST_MIN, le=BURST_MAX, title="burst", description="API calls at once; at least qps.", examples=[400])
]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
Duration: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^(?=.*[1-9])([0-9]{{1,6}}[hms])+{_END}",
        max_length=32,
        title="duration",
        description="In h, m and s; above zero.",
        examples=["15m", "1h30m"],
    ),
]
RepoPath: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=1024, title="path from the repository root", examples=["platform/prod-east"])
]
DnsLabel: TypeAlias = Annotated[
    str, Meta(pattern=f"^{_DNS_LABEL}{_END}", max_length=63, title="DNS-1123 label", examples=["prod-east"])
]
DnsName: TypeAlias = Annotated[str, Meta(pattern=f"^{_DNS_NAME}{_END}", max_length=253, title="DNS-1123 name")]
LabelKey: TypeAlias = Annotated[
    str, Meta(pattern=rf"^({_DNS_NAME}/)?{_LABEL_NAME}{_END}", max_length=317, title="label key", examples=["env"])
]
LabelValue: TypeAlias = Annotated[
    str, Meta(pattern=f"^({_LABEL_NAME})?{_END}", max_length=63, title="label value", examples=["prod"])
]
Image: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^({_HOST}/)?{_COMPONENT}(/{_COMPONENT})*(:[A-Za-z0-9_][-A-Za-z0-9_.]{{0,127}})?"
        rf"(@sha256:[0-9a-f]{{64}})?{_END}",
        max_length=512,
        title="image reference",
        examples=["registry.example/kubevirt-policy-softtaint@sha256:" + 64 * "0"],
    ),
]
"""As container runtimes read it (github.com/distribution/reference v0.6.0 regexp.go:81), digests by SHA-256 only."""
MetricName: TypeAlias = Annotated[
    str,
    Meta(pattern=rf"^[a-zA-Z_:][a-zA-Z0-9_:]*{_END}", max_length=512, title="metric name", examples=["team:x:rate"]),
]
LabelName: TypeAlias = Annotated[
    str, Meta(pattern=rf"^(?!__)[a-zA-Z_][a-zA-Z0-9_]*{_END}", max_length=512, title="Prometheus label name")
]
GroupName: TypeAlias = Annotated[
    str, Meta(pattern=rf"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?{_END}", max_length=128, title="group name")
]
AlertName: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+$",
        min_length=1,
        max_length=512,
        title="alert name",
        examples=["NodeNetworkBusy"],
    ),
]
"""On one line, and all of it visible."""
PromDuration: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^(?=[0-9])([0-9]{{1,6}}w)?([0-9]{{1,6}}d)?([0-9]{{1,6}}h)?([0-9]{{1,6}}m)?([0-9]{{1,6}}s)?{_END}",
        max_length=32,
        title="Prometheus duration",
        examples=["5m", "1h30m"],
    ),
]
Replicas: TypeAlias = Annotated[
    Literal["auto"] | Annotated[int, Meta(ge=1, le=255)],
    Meta(
        title="replicas",
        description="auto: KubeVirt scales virt-api with the nodes; a number fixes it (KubeVirt 1.1 and newer).",
    ),
]


def seconds(duration: str) -> int:
    """The length of a Go duration of h, m and s."""
    return sum(int(count) * _SECONDS[unit] for count, unit in _DURATION.findall(duration))


_PROMETHEUS_SECONDS = {"w": 604_800, "d": 86_400, **_SECONDS}


def prometheus_seconds(duration: str) -> int:
    """The length of a duration as Prometheus writes them."""
    return sum(int(count) * _PROMETHEUS_SECONDS[unit] for count, unit in re.findall(r"([0-9]+)([wdhms])", duration))


def leaves_repository(path: str) -> bool:
    """Whether a path is anything but one that stays below the repository root, with forward slashes."""
    parts = path.split("/")
    return path.startswith("/") or "\\" in path or "\0" in path or ".." in parts or ":" in parts[0]


def normal(path: str) -> str:
    """The path without empty and `.` steps."""
    return "/".join(part for part in path.split("/") if part not in ("", ".")) or "."


class Wrong(Value, frozen=True):
    """The code, message and help of a value that breaks its rule."""

    code: str
    message: str
    help: str


def wrong_qps(value: Any) -> Wrong:
    """Why a number cannot be a `qps`."""
    if value < QPS_MIN:
        return Wrong(
            "rate-limit/floor",
            f"qps {shown(value)} is below the floor of {QPS_MIN}: "
            + (_UNTRIED if value > 0 else "it does not mean the default, it blocks the client once burst is spent"),
            f"Leave the component out to keep its default, or give at least {QPS_MIN}.",
        )
    return Wrong(
        "rate-limit/inexact",
        f"qps {shown(value)} is too large: the products hold it in a 32-bit float, exact only up to {QPS_MAX}",
        f"Use at most {QPS_MAX}.",
    )


def wrong_burst(value: Any) -> Wrong:
    """Why a number cannot be a `burst`."""
    if value < BURST_MIN:
        return Wrong(
            "rate-limit/floor",
            f"burst {shown(value)} is below the floor of {BURST_MIN}: "
            + (_UNTRIED if value > 0 else "it does not mean the default, it makes every API call fail"),
            f"Leave the component out to keep its default, or give at least {BURST_MIN}.",
        )
    return Wrong(
        "policy/value", f"burst {shown(value)} does not fit a signed 32-bit integer", f"Use at most {BURST_MAX}."
    )


def wrong_duration(value: Any) -> Wrong:
    """Why a text cannot be a duration."""
    if _DURATION.sub("", value) == "" and value and seconds(value) == 0:
        return Wrong(
            "policy/value", f"{shown(value)} is no time at all: a duration is above zero", "Write it as in 15m."
        )
    if re.fullmatch(r"([0-9]+[hms])+", value):
        message = f"{shown(value)} is too long: each of its numbers has at most six digits"
        return Wrong("policy/value", message, "Write it in hours, as in 24h.")
    return _not_a_duration(value, "Use h, m and s with whole numbers, as in 1h30m.")


def _not_a_duration(value: str, help: str) -> Wrong:
    """Without a unit seconds are meant, as elsewhere in Kubernetes."""
    bare = value.isascii() and value.isdigit() and len(value) <= _DIGITS
    return Wrong("policy/value", f"{shown(value)} is not a duration", f"Write {value}s." if bare else help)


def wrong_alert(value: str) -> Wrong:
    """Why a text cannot be the name of an alert."""
    if not value:
        return Wrong("policy/value", "the name of the alert is empty", "Write a name, as in NodeNetworkBusy.")
    message = f"the name of alert {shown(value)} has a line break, or a character that nobody sees, or is too long"
    return Wrong("policy/value", message, "Write it on one line with visible characters, at most 512.")


def wrong_utilization(value: Any) -> Wrong:
    """Why a value is neither a metric nor a query of the policy's own."""
    help = f"Write one of {', '.join(METRICS)}, or {{query: …}} with PromQL."
    if not isinstance(value, dict):
        message = f"{shown(value)} is not a way to measure load"
        return Wrong("policy/value", message, did_you_mean(str(value).removeprefix("Prometheus"), METRICS) or help)
    if value.keys() != {"query"}:
        return Wrong("policy/value", "utilization as a mapping has the key query, and no other", help)
    if not isinstance(value["query"], str):
        return Wrong("policy/type", "utilization.query must be a text", "Put the expression in quotes.")
    if not value["query"]:
        return Wrong("policy/value", "utilization.query is empty", "Write a PromQL expression.")
    return Wrong("policy/value", "utilization.query is longer than 4096 characters", "Record parts of it by rules.")


def _not_a(what: str, help: str) -> Callable[[Any], Wrong]:
    return lambda value: Wrong("policy/value", f"{shown(value)} is not a {what}", help)


EXPLANATIONS: Mapping[str, Callable[[Any], Wrong]] = {
    "qps": wrong_qps,
    "burst": wrong_burst,
    "utilization": wrong_utilization,
    "replicas": _not_a("number of replicas", "Write auto, or a whole number from 1 to 255."),
    "duration": wrong_duration,
    "metric name": _not_a("metric name", "Use letters, digits, '_' and ':', as in team:node_load:rate5m."),
    "alert name": wrong_alert,
    "Prometheus label name": _not_a(
        "label name of Prometheus, which would refuse the whole file",
        "Use letters, digits and '_'; names that begin with two of them are its own.",
    ),
    "group name": _not_a("group name", "Use letters, digits, '-', '_' and '.'."),
    "Prometheus duration": lambda value: _not_a_duration(
        value, "Use w, d, h, m and s in this order with whole numbers, as in 1h30m."
    ),
    "version": _not_a(
        "version", 'Write MAJOR.MINOR or MAJOR.MINOR.PATCH in quotes, as in "1.14", without a leading v.'
    ),
    "image reference": _not_a(
        "reference to an image",
        "Write [registry/]name and a digest of 64 hex digits, as in registry.example/soft-tainter@sha256:….",
    ),
    "DNS-1123 label": _not_a("DNS-1123 label", "Use lower-case letters, digits and '-', at most 63."),
    "DNS-1123 name": _not_a("DNS-1123 name", "Use lower-case letters, digits, '-' and '.', at most 253."),
    "label key": _not_a("label key", "Use [prefix/]name of letters, digits, '-', '_' and '.'."),
    "label value": _not_a("label value", "Use at most 63 letters, digits, '-', '_' and '.'."),
}
"""By the title of the field's type; called with a value of the right type that breaks a rule."""
