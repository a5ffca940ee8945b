"""When two turns of siblings began in the same state: they read the same, and the same was done before.

What is read is not enough. Behind a dialog that the right and the wrong button close, the desktop looks
alike: with one value for both, the right button would take the blame for the wrong one. Clicks a few pixels
apart did the same if they led to the same screen; where a tree was read, also only in the same widgets.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from training.contracts.action import CLICKS, NEAR_PX, ActionKind
from training.contracts.types import Observation, Turn

SURE_PX = NEAR_PX // 2
"""Clicks this far apart count as one; fewer than where people compare, since mistakes are trained on."""
Point = tuple[int, ...]
START = "start"
UNSHARED = ""
"""The state of a turn of which something before is not known: no sibling is in the same."""


class Move(NamedTuple):
    """What a turn's actions do to a desktop."""

    deed: str
    """All but the point of a single click; "" = nothing but wait."""
    point: Point
    """() = it is no single click."""


def states_of_members(members: Mapping[int, Sequence[Turn]], *, shows_screen: bool) -> dict[int, list[str]]:
    """trajectory_id -> the state that each of its turns began in."""
    seen = {
        key: [state_of(turn.observation, shows_screen=shows_screen) for turn in turns]
        for key, turns in members.items()
    }
    moves = {key: [_move_of_turn(turn) for turn in turns] for key, turns in members.items()}
    return states_by_history(seen, moves)


def _move_of_turn(turn: Turn) -> Move:
    actions = [action.model_dump(mode="json") for action in turn.actions]
    return move_of(actions, turn.measured.widgets if turn.measured else "")


def states_by_history(
    seen: Mapping[int, Sequence[str]], moves: Mapping[int, Sequence[Move]]
) -> dict[int, list[str]]:
    """`seen`: digest of what the policy read at each turn, "" = unknown; `moves`: what each did.

    A turn that does nothing and changes nothing leaves the state as it was. Clicks that lead from one state
    to the same screen are one move where each is near all the others: a chain of them could cross rows.
    """
    states = {key: [START][: len(row)] for key, row in seen.items()}
    clusters: defaultdict[tuple[str, str, str], list[list[Point]]] = defaultdict(list)
    for turn in range(1, max(map(len, seen.values()), default=0)):
        there = [key for key, row in seen.items() if turn < len(row)]
        for key in sorted(there, key=lambda key: moves[key][turn - 1]):
            move, before, now = moves[key][turn - 1], seen[key][turn - 1], seen[key][turn]
            last = states[key][-1]
            if not last or not now:
                states[key].append(UNSHARED)
            elif not move.deed and before == now:
                states[key].append(last)
            else:
                point = _first_near(move.point, clusters[last, move.deed, now])
                text = f"{last}\n{move.deed}{point}\n{now}"
                states[key].append(hashlib.sha256(text.encode()).hexdigest())
    return states


def _first_near(point: Point, clusters: list[list[Point]]) -> Point:
    """The first point of the cluster that it joins."""
    found = next((one for one in clusters if all(_are_near(point, other) for other in one)), None)
    if found is None:
        clusters.append(found := [])
    found.append(point)
    return found[0]


def _are_near(one: Point, other: Point) -> bool:
    return all(abs(mine - its) <= SURE_PX for mine, its in zip(one, other, strict=True))


def move_of(actions: Sequence[Mapping[str, Any]], widgets: str) -> Move:
    """Of a turn's actions, JSON; `widgets` as in `MeasuredTurn`."""
    done = [dict(action) for action in actions if action["kind"] != ActionKind.WAIT]
    point: Point = ()
    if len(done) == 1 and done[0]["kind"] in CLICKS and None not in (done[0].get("x"), done[0].get("y")):
        point = done[0].pop("x"), done[0].pop("y")
        done[0]["widgets"] = widgets
    return Move(json.dumps(done, sort_keys=True) if done else "", point)


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
