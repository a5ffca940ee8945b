"""What the dialect has words for."""

from testing.training.every_action import STAYS, K, in_tool
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.types import Action


def can_say(a: Action) -> bool:
    return in_tool(a) and not newer_parts(a) and (a.kind not in STAYS or a.kind in (K.KEY_DOWN, K.KEY_UP))
