"""The built-in rules, held against promtool, a real Prometheus and an independent computation."""
