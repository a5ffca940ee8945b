"""Which turns of a successful trajectory are imitated, and which are only the context of later ones."""

from collections.abc import Sequence

from training.contracts.types import Source, Turn


def context_turns(turns: Sequence[Turn]) -> list[bool]:
    """For each turn, whether it is context only when the trajectory is imitated.

    - What says so itself: an imported `step_loss_mask` of 0.
    - A completion that meant nothing.
    - The agent's turns before a person's: that is what the person had to mend. What the agent did after the
      last of them led to the success, and is imitated.
    """
    last_of_person = max((i for i, turn in enumerate(turns) if turn.source is Source.HUMAN), default=-1)
    return [
        turn.is_context
        or turn.parse_error is not None
        or (turn.source is Source.POLICY and place < last_of_person)
        for place, turn in enumerate(turns)
    ]
