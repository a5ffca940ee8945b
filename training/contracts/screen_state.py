"""When two turns of siblings began in the same state: they read the same, and the same was done before.

What is read is not enough. Behind a dialog that the right and the wrong button close, the desktop looks
alike: with one value for both, the right button would take the blame for the wrong one.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from training.contracts.action import ActionKind
from training.contracts.types import Observation, Turn

START = "start"
UNSHARED = ""
"""The state of a turn of which something before is not known: no sibling is in the same."""


def states_of_turns(turns: Sequence[Turn], *, shows_screen: bool) -> list[str]:
    """The state that each turn of a trajectory began in."""
    seen = [state_of(turn.observation, shows_screen=shows_screen) for turn in turns]
    moves = [move_of([action.model_dump(mode="json") for action in turn.actions]) for turn in turns]
    return states_by_history(seen, moves)


def states_by_history(seen: Sequence[str], moves: Sequence[str]) -> list[str]:
    """`seen`: digest of what the policy read at each turn, "" = unknown; `moves`: what each did (`move_of`).

    A turn that does nothing and changes nothing leaves the state as it was.
    """
    states = [START][: len(seen)]
    for move, before, now in zip(moves, seen, seen[1:], strict=False):
        last = states[-1]
        if not last or not now:
            states.append(UNSHARED)
        elif not move and before == now:
            states.append(last)
        else:
            states.append(hashlib.sha256(f"{last}\n{move}\n{now}".encode()).hexdigest())
    return states


def move_of(actions: Sequence[Mapping[str, Any]]) -> str:
    """What a turn's actions (JSON) do to a desktop; "" = nothing but wait."""
    done = [action for action in actions if action["kind"] != ActionKind.WAIT]
    return json.dumps(done, sort_keys=True) if done else ""


def state_of(observation: Observation, *, shows_screen: bool) -> str:
    """Digest of the screen, or of tree and terminal where the policy reads these alone; "" = unknown.

    A clock or a cursor that blinks makes two screens of one state, so that fewer are shared.
    """
    tree, terminal = (
        part.sha256 if part else "" for part in (observation.accessibility, observation.terminal)
    )
    return state_of_digests(observation.sha256, tree, terminal, shows_screen=shows_screen)


def state_of_digests(frame: str, tree: str, terminal: str, *, shows_screen: bool) -> str:
    """The same from what was stored."""
    read = f"{tree}/{terminal}" if tree or terminal else ""
    return frame if shows_screen or not read else read
