"""Kustomize directories read statically: how one operator object looks there, and the patch it takes.

`BaseReader(tree).read(base, wanted, component)` answers with a `Base` or with the problems that keep
it from being read; `operations` and `apply` make and run the JSON 6902 patch onto what it found.
"""

from renderer.bases.patching import APPEND, FieldError, Inapplicable, Operation, apply, operations, pointer
from renderer.bases.paths import relative
from renderer.bases.reader import BaseReader
from renderer.bases.removal import still_listed
from renderer.bases.values import Base, BaseProblem, Wanted

__all__ = [
    "APPEND",
    "Base",
    "BaseProblem",
    "BaseReader",
    "FieldError",
    "Inapplicable",
    "Operation",
    "Wanted",
    "apply",
    "operations",
    "pointer",
    "relative",
    "still_listed",
]
