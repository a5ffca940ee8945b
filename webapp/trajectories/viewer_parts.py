"""The pieces of the viewer that the server renders, on first load and live alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string

from training.contracts.types import Limit, TrajectoryStatus
from webapp.lib.turn_time import time_of
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.trajectories.page_queries import brief_turns
from webapp.trajectories.turn_display import (
    action_caption,
    key_caps,
    running_terms,
    terms_total,
    turn_json,
    turn_state,
    waterfall,
)

NUM_WHOLE = 24
"""Turns that travel with the page whole; of those after them only screen and colour do."""
MAX_FIRST_CARDS = 6
MAX_FIRST_TEXT = 12_000
"""Characters of the cards that travel with the page; other cards are fetched when they are looked at."""
MAX_CARD_TEXT = 4_000
"""Characters of each text of a card; the whole one is fetched on request."""


def coordinate_space(trajectory: Trajectory) -> str:
    """What the numbers in this trajectory's completions mean; empty without an experiment."""
    return trajectory.experiment.settings.prompt.coordinate_space if trajectory.experiment else ""


def card_context(turn: TurnRecord) -> dict[str, Any]:
    """What `turn_card.html` and `turn_cell.html` show."""
    completion = turn.completion or {}
    texts = texts_of(turn)
    think_ms = milliseconds(turn.observed_at, turn.completed_at)
    waited_ms = round(1000 * completion.get("waited_s", 0.0))
    return {
        "turn": turn,
        "state": turn_state(turn),
        "caption": action_caption(turn.action) if turn.action else "",
        "keys": key_caps(turn.action) if turn.action else [],
        "completion": completion,
        "texts": {name: text[:MAX_CARD_TEXT] for name, text in texts.items()},
        "num_cut": sum(max(0, len(text) - MAX_CARD_TEXT) for text in texts.values()),
        "num_tokens": len(completion.get("token_ids") or ()),
        "total": terms_total(turn.terms) if turn.terms else None,
        "think_ms": None if think_ms is None else max(0, think_ms - waited_ms),
        "waited_ms": waited_ms,
        "act_ms": milliseconds(turn.completed_at, turn.acted_at),
        "time": time_of(turn.spent_ms),
    }


def texts_of(turn: TurnRecord) -> dict[str, str]:
    """The texts of a card, whole."""
    written = str((turn.completion or {}).get("text", ""))
    return {"completion": written, "thought": turn.thought, "given": turn.observation_text}


@dataclass(frozen=True)
class FirstPage:
    """The turns of a trajectory as the viewer's page brings them."""

    brief: list[TurnRecord]
    """All of them, without completions and texts."""
    whole: list[TurnRecord]
    """The first `NUM_WHOLE`."""

    def cards(self) -> list[dict[str, Any]]:
        """Of the whole ones."""
        return [card_context(turn) for turn in self.whole]

    def rest(self) -> dict[str, Any]:
        """Screens and colours of the others, as short as they can be."""
        others = self.brief[len(self.whole) :]
        return {
            "first": len(self.whole),
            "frames": " ".join(turn.frame or "-" for turn in others),
            "states": " ".join(turn_state(turn) for turn in others),
        }


def first_page(trajectory: Trajectory) -> FirstPage:
    """Two queries, however long it is."""
    whole = list(trajectory.turns.order_by("index")[:NUM_WHOLE])
    return FirstPage(brief_turns(trajectory), whole)


def num_first_cards(cards: list[dict[str, Any]]) -> int:
    """How many cards fit into the page: at least one."""
    room = MAX_FIRST_TEXT
    for number, card in enumerate(cards[:MAX_FIRST_CARDS]):
        room -= sum(len(text) for text in card["texts"].values())
        if room < 0:
            return max(1, number)
    return MAX_FIRST_CARDS


def milliseconds(start: Any, end: Any) -> int | None:
    """Time between two moments; None while one of them is missing."""
    return None if start is None or end is None else round((end - start).total_seconds() * 1000)


def render_turns(
    request: HttpRequest, trajectory: Trajectory, turns: list[TurnRecord]
) -> list[dict[str, Any]]:
    """Each turn as player data with the HTML of its filmstrip cell and its card."""
    space = coordinate_space(trajectory)
    found = []
    for turn in turns:
        context = card_context(turn)
        found.append(
            {
                "turn": turn_json(turn, space),
                "cell": render_to_string("trajectories/parts/turn_cell.html", context, request),
                "card": render_to_string("trajectories/parts/turn_card.html", context, request),
            }
        )
    return found


def end_frame(trajectory: Trajectory, turns: list[TurnRecord]) -> dict[str, Any] | None:
    """The screen that the evaluator judged; None where none was taken."""
    if not trajectory.is_final or not trajectory.final_frame or not turns:
        return None
    return {"frame": trajectory.final_frame, "width": turns[-1].width, "height": turns[-1].height}


def limit_hit(trajectory: Trajectory) -> dict[str, str] | None:
    """What truncated it, in words, and where that is set; None when nothing is known to have done so."""
    if not trajectory.limit:
        return None
    limit, desktops = Limit(trajectory.limit), trajectory.desktop_config
    if limit is Limit.TASK_TURNS:
        turns = trajectory.task.spec.get("max_turns")
        return {"words": f"{turns} turns, the task's own", "where": "It wins over desktops.max_turns"}
    if limit is Limit.TURNS:
        return {"words": f"{desktops.max_turns} turns", "where": "desktops.max_turns of the config"}
    if limit is Limit.TIME:
        seconds = f"{desktops.trajectory_timeout_s:g} s"
        return {"words": seconds, "where": "desktops.trajectory_timeout_s of the config"}
    experiment = trajectory.experiment
    tokens = f"{experiment.settings.sampling.max_context_tokens} " if experiment else ""
    return {"words": f"{tokens}tokens", "where": "sampling.max_context_tokens of the config"}


def reward_context(trajectory: Trajectory, turns: list[TurnRecord]) -> dict[str, Any]:
    """The reward breakdown; while the trajectory runs, its turns' terms so far."""
    is_scored = TrajectoryStatus(trajectory.status).is_scored()
    terms = trajectory.terms if trajectory.terms else running_terms(turns)
    return {
        "trajectory": trajectory,
        "limit": limit_hit(trajectory),
        "is_scored": is_scored,
        "bars": waterfall(terms, trajectory.reward),
        "so_far": terms_total(terms) if terms and not is_scored else None,
    }
