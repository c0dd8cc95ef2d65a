"""The work tree on disk: read, compared with what was rendered, and written in whole files."""

from renderer.tree.changes import Change, Comparison, State, compare
from renderer.tree.disk import DiskTree
from renderer.tree.writing import CannotWrite, write

__all__ = ["CannotWrite", "Change", "Comparison", "DiskTree", "State", "compare", "write"]
