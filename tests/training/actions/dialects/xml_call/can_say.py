"""What the dialect has words for."""

from testing.training.every_action import holds, in_tool
from training.contracts.types import Action


def can_say(a: Action) -> bool:
    return in_tool(a) and not holds(a, "</parameter>", "</think>")
