"""What no single policy can see: findings on all policies that apply to one cluster, and on its overlay."""

from renderer.checks.left_behind import left_behind, tended
from renderer.checks.operator_taints import operator_left_behind
from renderer.checks.pressure import without_pressure
from renderer.checks.queries import through_records, unrecorded
from renderer.checks.rules import across

__all__ = [
    "across",
    "left_behind",
    "operator_left_behind",
    "tended",
    "through_records",
    "unrecorded",
    "without_pressure",
]
