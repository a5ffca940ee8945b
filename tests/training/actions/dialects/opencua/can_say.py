"""What the dialect has words for."""

from testing.training.every_action import holds, in_code
from training.contracts.types import Action


def can_say(a: Action) -> bool:
    return in_code(a) and not holds(a, "```")
