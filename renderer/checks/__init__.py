"""What no single policy can see: findings on all policies that apply to one cluster."""

from renderer.checks.rules import across

__all__ = ["across"]
