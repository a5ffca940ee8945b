"""What the dialect has words for."""

from testing.training.every_action import K, by_keyboard, is_diagonal
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.types import Action


def can_say(a: Action) -> bool:
    return (
        by_keyboard(a)
        or (not newer_parts(a) and a.kind is K.SCROLL and a.x is None and not is_diagonal(a))
        or (
            not newer_parts(a)
            and a.kind in (K.CLICK, K.DOUBLE_CLICK, K.RIGHT_CLICK, K.MOVE, K.DRAG)
            and a.x is not None
        )
    )
