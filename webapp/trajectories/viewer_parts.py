"""The pieces of the viewer that the server renders, on first load and live alike."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string

from training.contracts.types import TrajectoryStatus
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.trajectories.turn_display import (
    action_caption,
    key_caps,
    running_terms,
    terms_total,
    tokens,
    turn_json,
    turn_state,
    waterfall,
)

MAX_TOKENS_SHOWN = 800
"""Of one completion; more would make a page of megabytes."""


def coordinate_space(trajectory: Trajectory) -> str:
    """What the numbers in this trajectory's completions mean; empty without an experiment."""
    return trajectory.experiment.settings.prompt.coordinate_space if trajectory.experiment else ""


def card_context(turn: TurnRecord) -> dict[str, Any]:
    """What `turn_card.html` and `turn_cell.html` show."""
    completion = turn.completion or {}
    shown = tokens(completion)
    return {
        "turn": turn,
        "state": turn_state(turn),
        "caption": action_caption(turn.action) if turn.action else "",
        "keys": key_caps(turn.action) if turn.action else [],
        "completion": completion,
        "tokens": shown[:MAX_TOKENS_SHOWN],
        "num_tokens": len(shown),
        "total": terms_total(turn.terms) if turn.terms else None,
        "think_ms": milliseconds(turn.observed_at, turn.completed_at),
        "act_ms": milliseconds(turn.completed_at, turn.acted_at),
    }


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
    """The screen that the last action left, when it was recorded apart from the last observation."""
    if not trajectory.is_final or not trajectory.last_frame or not turns:
        return None
    last = turns[-1]
    if last.frame == trajectory.last_frame:
        return None
    return {"frame": trajectory.last_frame, "width": last.width, "height": last.height}


def reward_context(trajectory: Trajectory, turns: list[TurnRecord]) -> dict[str, Any]:
    """The reward breakdown; while the trajectory runs, its turns' terms so far."""
    is_scored = TrajectoryStatus(trajectory.status).is_scored()
    terms = trajectory.terms if trajectory.terms else running_terms(turns)
    return {
        "trajectory": trajectory,
        "is_scored": is_scored,
        "bars": waterfall(terms, trajectory.reward),
        "so_far": terms_total(terms) if terms and not is_scored else None,
    }
