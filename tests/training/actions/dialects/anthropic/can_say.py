"""What the dialect has words for."""

from testing.training.every_action import STAYS, K, is_answer, is_diagonal
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.types import Action


def can_say(a: Action) -> bool:
    return (
        not is_diagonal(a)
        and not is_answer(a)
        and newer_parts(a).keys() <= {"modifiers", "hold_s"}
        and (a.kind is not K.MOVE or a.x is not None)
        and (a.kind is not K.DRAG or not a.modifiers)
        and (a.kind not in STAYS or (a.kind in (K.MOUSE_DOWN, K.MOUSE_UP) and a.x is None))
    )
