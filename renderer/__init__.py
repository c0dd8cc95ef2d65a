"""Short typed policy files in, kustomize overlays for KubeVirt clusters out."""

__version__ = "0.1.0"
