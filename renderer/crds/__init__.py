"""CustomResourceDefinitions: what a cluster's API server knows of a kind, and what it would refuse of an object."""

from renderer.crds.reading import Definition, Definitions, Exported, Fault, Schema, read

__all__ = ["Definition", "Definitions", "Exported", "Fault", "Schema", "read"]
