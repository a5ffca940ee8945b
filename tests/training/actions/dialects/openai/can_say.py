"""What the dialect has words for."""

from testing.training.every_action import CLICKS, K
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.types import Action


def can_say(a: Action) -> bool:
    return (
        newer_parts(a).keys() <= {"modifiers"}
        and all(key.lower() == key or len(key) > 1 or len(key.lower()) > 1 for key in a.keys)
        and (a.kind in (K.TYPE, K.KEY, K.SCROLL) or (a.kind in CLICKS | {K.MOVE, K.DRAG} and a.x is not None))
    )
