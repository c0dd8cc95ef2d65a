"""How the YAML readers in use type a plain scalar, and where they disagree.

YAML 1.2 core schema (what this project reads by), YAML 1.1 as PyYAML and Ruby read it, and the
reader of kubectl, kustomize and the API server, which is a mixture of both.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache


class Kind(StrEnum):
    """The type of a plain scalar under the YAML 1.2 core schema, or that readers disagree."""

    NULL = "null"
    BOOL = "boolean"
    INT = "integer"
    FLOAT = "number"
    STR = "string"
    AMBIGUOUS = "ambiguous"


_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true", "True", "TRUE", "false", "False", "FALSE"}
_BOOL_11 = {word for base in ("y", "n", "yes", "no", "on", "off") for word in (base, base.title(), base.upper())}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})|0x[0-9a-fA-F]{1,15}")  # what 64 bits surely hold
_LARGE = re.compile(r"[-+]?[1-9][0-9]{18,}|0x[0-9a-fA-F]{16,}")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)\.[0-9]*)(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_DISPUTED = re.compile(
    r"""
      [-+]?0[0-9_]+                                              # 0123: octal, decimal or text
    | [-+]?0o?[0-7_]+ | [-+]?0b[01_]+ | [-+]?0x[0-9a-fA-F_]+     # 0o17, 0b1, -0x1f
    | [-+]?[0-9][0-9_]*                                          # 1_000
    | [-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?   # 1e3, 01.5, 1_0.5
    | [-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?           # 12:30, sexagesimal
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}                             # a date
      (?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?
    | = | <<
    """,
    re.VERBOSE,
)


def overflows(plain: str) -> bool:
    """Whether a scalar is an integer to every reader, and ambiguous only by its size."""
    return _LARGE.fullmatch(plain) is not None


@lru_cache(maxsize=8192)
def kind(plain: str) -> Kind:
    """The type of a plain scalar, `AMBIGUOUS` where a YAML 1.1 and a YAML 1.2 reader differ."""
    if plain in _NULL:
        return Kind.NULL
    if plain in _BOOL:
        return Kind.BOOL
    if plain in _BOOL_11:
        return Kind.AMBIGUOUS
    if _INT.fullmatch(plain):
        return Kind.INT
    if _FLOAT.fullmatch(plain):
        return Kind.FLOAT
    return Kind.AMBIGUOUS if _DISPUTED.fullmatch(plain) else Kind.STR


def value(plain: str, scalar_kind: Kind) -> str | int | float | bool | None:
    """The Python value of a plain scalar; an ambiguous one stays text."""
    match scalar_kind:
        case Kind.NULL:
            return None
        case Kind.BOOL:
            return plain.lower() == "true"
        case Kind.INT:
            return int(plain, 16 if plain.startswith("0x") else 10)
        case Kind.FLOAT:
            return float(re.sub(r"\.(?=[iInN])", "", plain))
        case Kind.STR | Kind.AMBIGUOUS:
            return plain
