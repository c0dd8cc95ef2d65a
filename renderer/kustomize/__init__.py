"""The real kustomize: found, held to a version, and run on folders of the repository."""

from renderer.kustomize.tool import OLDEST, Built, Kustomize, Missing, find
from renderer.kustomize.without import without_component

__all__ = ["OLDEST", "Built", "Kustomize", "Missing", "find", "without_component"]
