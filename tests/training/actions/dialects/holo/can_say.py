"""What the dialect has words for."""

from testing.training.every_action import POINTED, STAYS, K, in_json
from training.actions.write.unsaid_parts import newer_parts
from training.contracts.types import Action


def can_say(a: Action) -> bool:
    return (
        in_json(a)
        and not newer_parts(a)
        and a.kind not in STAYS
        and (a.kind not in POINTED | {K.DRAG} or a.x is not None)
    )
