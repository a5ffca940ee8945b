"""Turns as the pages show them: one JSON shape for the player, words for captions, parts of a reward.

Pure functions over stored rows and their JSON; nothing here touches the database.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from webapp.trajectories.action_words import action_caption, actions_caption, actions_of, key_caps
from webapp.trajectories.models import TurnRecord

RAW_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SPACE_UNITS = {
    "permille": "‰ of the screen",
    "relative-1000": "of 1000 x 1000",
    "resized": "px of the resized image",
    "screen": "px",
}


UNSETTLED_WORDS = {
    "moving": "The screen had not come to rest when this picture was taken.",
    "due": "A program was about to go on by itself when this picture was taken.",
    "later": "The screen changed after this picture was taken, before the action.",
}
"""By the values of `Turn.unsettled`."""
NO_JSON = (None, "null", "[]")
"""Texts of columns that hold nothing."""


@dataclass
class BriefTurn:
    """A turn without its completion and texts; its fields are the columns of `brief_rows`.

    Pages of many long trajectories read thousands, of which a model's instances would cost twice the time.
    What is JSON is read when it is asked for: of most turns such a page shows the colour alone.
    """

    trajectory_id: int
    index: int
    frame: str
    width: int
    height: int
    action_json: str | None
    parse_error: str
    action_error: str
    terms_json: str
    source: str
    earlier_json: str | None = None

    @cached_property
    def action(self) -> dict[str, Any] | None:
        return None if self.action_json is None else json.loads(self.action_json)

    @cached_property
    def earlier_actions(self) -> list[dict[str, Any]] | None:
        return None if self.earlier_json is None else json.loads(self.earlier_json)

    @cached_property
    def terms(self) -> list[dict[str, Any]]:
        return [] if self.terms_json in NO_JSON else json.loads(self.terms_json)

    @property
    def has_action(self) -> bool:
        return self.action_json not in NO_JSON

    @property
    def state(self) -> str:
        """Of `turn_state`."""
        return turn_state(self)


def turn_json(
    turn: TurnRecord | BriefTurn, coordinate_space: str = "", *, with_raw: bool = True
) -> dict[str, Any]:
    """What the player needs of a turn; the same shape on first load, live and in the replay inbox.

    `with_raw` reads the completion, a query for each turn whose column was left out.
    """
    action = turn.action or None
    return {
        "index": turn.index,
        "frame": turn.frame,
        "width": turn.width,
        "height": turn.height,
        "action": action,
        "caption": actions_caption(actions_of(turn)),
        "keys": key_caps(action) if action else [],
        "steps": steps_of(actions_of(turn)),
        "raw": raw_coordinates(turn, coordinate_space) if with_raw and isinstance(turn, TurnRecord) else "",
        "state": turn_state(turn),
        "parseError": turn.parse_error,
        "actionError": turn.action_error,
        "value": round(terms_total(turn.terms), 4) if turn.terms else None,
        "source": turn.source,
    }


def steps_of(actions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each action of a turn that has several; empty where there is one."""
    if len(actions) < 2:
        return []
    return [{"action": one, "caption": action_caption(one), "keys": key_caps(one)} for one in actions]


def turn_state(turn: TurnRecord | BriefTurn) -> str:
    """One word for the colour of a turn: waiting, parse-error, action-error, good, bad, neutral."""
    if turn.parse_error:
        return "parse-error"
    if turn.action_error:
        return "action-error"
    if not (turn.has_action if isinstance(turn, BriefTurn) else turn.action is not None):
        return "waiting"
    total = terms_total(turn.terms)
    if total > 1e-9:
        return "good"
    return "bad" if total < -1e-9 else "neutral"


def terms_total(terms: list[dict[str, Any]]) -> float:
    """Sum of the contributions of reward terms."""
    return sum(float(term.get("contribution", 0.0)) for term in terms)


def raw_coordinates(turn: TurnRecord, coordinate_space: str) -> str:
    """The numbers as the model wrote them, with their unit; empty when the action has no point."""
    action, completion = turn.action, turn.completion
    if not action or action.get("x") is None or not completion:
        return ""
    written = completion.get("text", "")
    if turn.thought and turn.thought in written:
        written = written.rpartition(turn.thought)[2]
    wanted = 4 if action.get("to_x") is not None else 2
    numbers = RAW_NUMBER.findall(written)[:wanted]
    if len(numbers) < wanted:
        return ""
    return f"{', '.join(numbers)} {SPACE_UNITS.get(coordinate_space, '')}".strip()


def waterfall(terms: list[dict[str, Any]], reward: float | None) -> list[dict[str, Any]]:
    """Bars of a reward breakdown: each starts where the one before ended.

    `left` and `width` are percent of the shown range, which always holds 0.
    """
    edges, total = [0.0], 0.0
    for term in terms:
        total += float(term.get("contribution", 0.0))
        edges.append(total)
    low, high = min(edges), max([*edges, reward or 0.0])
    span = (high - low) or 1.0
    bars = []
    for term, start, end in zip(terms, edges, edges[1:], strict=False):
        bars.append(
            {
                **term,
                "short": str(term.get("name", "")).rpartition(".v")[0] or term.get("name", ""),
                "left": round(100 * (min(start, end) - low) / span, 2),
                "width": round(100 * abs(end - start) / span, 2),
                "zero": round(100 * (0 - low) / span, 2),
                "is_gain": end >= start,
                "total": end,
            }
        )
    return bars


def running_terms(turns: Sequence[TurnRecord | BriefTurn]) -> list[dict[str, Any]]:
    """The turn terms so far, summed by name: the breakdown before the evaluator has spoken."""
    found: dict[str, dict[str, Any]] = {}
    for turn in turns:
        for term in turn.terms:
            entry = found.setdefault(term["name"], {**term, "value": 0.0, "contribution": 0.0, "note": ""})
            entry["value"] += float(term.get("value", 0.0))
            entry["contribution"] += float(term.get("contribution", 0.0))
    return list(found.values())
