"""What the dialect has words for."""

from testing.training.every_action import POINTED, STAYS, K, in_json, is_answer
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.types import Action


def can_say(a: Action) -> bool:
    return (
        in_json(a)
        and not newer_parts(a)
        and not is_answer(a)
        and a.kind not in STAYS | {K.TRIPLE_CLICK}
        and (a.kind not in POINTED or a.x is not None)
        and (a.kind is not K.SCROLL or (a.x is None and not a.scroll_x))
        and (a.kind is not K.DRAG or a.x is not None)
    )
