"""What the dialect has words for."""

from testing.training.every_action import in_tool as can_say

__all__ = ["can_say"]
