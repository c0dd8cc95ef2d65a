"""The whole of it: a base directory to the operator object that it declares."""

from __future__ import annotations

from renderer.bases.values import Base, BaseProblem, Wanted
from renderer.model import Tree


class BaseReader:
    """Reads bases of one tree.  What several clusters share is parsed once per reader."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def read(self, base: str, wanted: Wanted, component: str | None) -> Base | list[BaseProblem]:
        """The wanted object in the directory `base`, or every reason why it is not found there.

        `component` is our own component's folder where the base is to list it (form component), none where
        our folder lists the base (form overlay).  Both are paths from the root of the tree.
        """
        raise NotImplementedError
