"""The in-cluster job that keeps soft taints in step with load; the renderer shares its classification."""
