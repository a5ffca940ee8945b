"""What the dialect has words for."""

from testing.training.every_action import K
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.types import Action

SCROLL_NOTCHES, WAIT_S = 5, 5.0
"""What its words mean, which have no number."""


def can_say(a: Action) -> bool:
    return not newer_parts(a) and (
        a.kind in (K.TYPE, K.KEY)
        or (a.kind in (K.KEY_DOWN, K.KEY_UP) and len(a.keys) == 1)
        or (a.kind is K.SCROLL and sorted((abs(a.scroll_x), abs(a.scroll_y))) == [0, SCROLL_NOTCHES])
        or (a.kind is K.WAIT and a.seconds == WAIT_S)
        or (a.kind is K.TERMINATE and not (a.status == "failure" and a.text))
        or (a.kind in (K.CLICK, K.DOUBLE_CLICK, K.RIGHT_CLICK, K.MOVE, K.DRAG) and a.x is not None)
    )
