"""What the watched desktops do: type a word, wait as long as a policy thinks, type the next."""

from __future__ import annotations

from training.contracts.types import Action, ActionKind

PAUSE_S = 1.0
"""What a policy takes to think; without it eight desktops fill two cores by themselves."""


def script(num_turns: int) -> list[Action]:
    """Pairs of a word and a wait."""
    pairs = [
        (Action(kind=ActionKind.TYPE, text=f"word {number}\n"), Action(kind=ActionKind.WAIT, seconds=PAUSE_S))
        for number in range(num_turns // 2)
    ]
    return [action for pair in pairs for action in pair]
