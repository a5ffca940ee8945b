"""What the dialect has words for."""

from testing.training.every_action import in_code, is_answer
from training.contracts.types import Action


def can_say(a: Action) -> bool:
    return in_code(a) and not is_answer(a)
