"""What the dialect has words for."""

from testing.training.every_action import by_keyboard as can_say

__all__ = ["can_say"]
