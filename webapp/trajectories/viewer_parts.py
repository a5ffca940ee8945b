"""The pieces of the viewer that the server renders, on first load and live alike."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string

from training.contracts.number_text import counted
from training.contracts.types import Limit, TrajectoryStatus
from webapp.lib.turn_time import time_of
from webapp.trajectories.action_words import actions_caption, actions_of, key_caps
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.trajectories.queries.trajectories import brief_turns
from webapp.trajectories.queries.turn_credit import Stretch
from webapp.trajectories.turn_display import (
    UNSETTLED_WORDS,
    BriefTurn,
    running_terms,
    steps_of,
    terms_total,
    turn_json,
    turn_state,
    waterfall,
)

NUM_FIRST_CELLS = 24
"""Turns whose cells travel with the page; of those after them only screen and colour do."""
MAX_FIRST_CARDS = 3
MAX_FIRST_TEXT = 12_000
"""Characters of the cards that travel with the page; other cards are fetched when they are looked at."""
MAX_CARD_TEXT = 4_000
"""Characters of each text of a card; the whole one is fetched on request."""


def coordinate_space(trajectory: Trajectory) -> str:
    """What the numbers in this trajectory's completions mean; empty without an experiment."""
    return trajectory.experiment.settings.prompt.coordinate_space if trajectory.experiment else ""


def card_context(turn: TurnRecord) -> dict[str, Any]:
    """What `turn_card.html` shows as `card`, and `turn_cell.html` as it is."""
    completion = turn.completion or {}
    texts = texts_of(turn)
    think_ms = milliseconds(turn.observed_at, turn.completed_at)
    waited_ms = round(1000 * completion.get("waited_s", 0.0))
    return {
        "turn": turn,
        "state": turn_state(turn),
        "caption": actions_caption(actions_of(turn)),
        "keys": key_caps(turn.action) if turn.action and not turn.earlier_actions else [],
        "steps": steps_of(actions_of(turn)),
        "completion": completion,
        "texts": {name: text[:MAX_CARD_TEXT] for name, text in texts.items()},
        "num_cut": sum(max(0, len(text) - MAX_CARD_TEXT) for text in texts.values()),
        "num_tokens": len(completion.get("token_ids") or ()),
        "unsettled": UNSETTLED_WORDS.get(turn.unsettled, ""),
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

    turns: list[BriefTurn]
    whole: list[TurnRecord]
    """The first `MAX_FIRST_CARDS`."""

    def cells(self) -> list[dict[str, Any]]:
        """What `turn_cell.html` shows of each of the first turns."""
        first = self.turns[:NUM_FIRST_CELLS]
        captions = (actions_caption(actions_of(turn)) for turn in first)
        return [{"turn": turn, "caption": caption} for turn, caption in zip(first, captions, strict=True)]

    def cards(self) -> list[dict[str, Any]]:
        """What `turn_card.html` shows of the first turns, of as many as fit: at least one."""
        cards = [card_context(turn) for turn in self.whole]
        sizes = itertools.accumulate(sum(map(len, card["texts"].values())) for card in cards)
        return cards[: max(1, sum(size <= MAX_FIRST_TEXT for size in sizes))]

    def player_turns(self, coordinate_space: str) -> list[dict[str, Any]]:
        """Of those with a cell; what only a completion tells comes with its card."""
        first: list[TurnRecord | BriefTurn] = [*self.whole, *self.turns[len(self.whole) : NUM_FIRST_CELLS]]
        return [turn_json(turn, coordinate_space) for turn in first]

    def rest(self) -> dict[str, Any]:
        """Screens and colours of the others, as short as they can be."""
        others = self.turns[NUM_FIRST_CELLS:]
        return {
            "first": NUM_FIRST_CELLS,
            "frames": " ".join(turn.frame or "-" for turn in others),
            "states": " ".join(turn.state for turn in others),
        }


def first_page(trajectory: Trajectory) -> FirstPage:
    """Two queries, however long it is."""
    whole = list(trajectory.turns.order_by("index")[:MAX_FIRST_CARDS])
    return FirstPage(brief_turns(trajectory), whole)


def shows_texts(trajectory: Trajectory, page: FirstPage) -> bool:
    """Whether tree or terminal are read with its turns."""
    experiment = trajectory.experiment
    if experiment and experiment.settings.prompt.reads_text:
        return True
    return any(turn.read_texts for turn in page.whole)


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
                "card": render_to_string(
                    "trajectories/parts/turn_card.html", {"turn": turn, "card": context}, request
                ),
            }
        )
    return found


def end_frame(trajectory: Trajectory, turns: Sequence[TurnRecord | BriefTurn]) -> dict[str, Any] | None:
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
        return {
            "words": f"{counted(turns or 0, 'turn')}, the task's own",
            "where": "It wins over desktops.max_turns",
        }
    if limit is Limit.TURNS:
        return {"words": counted(desktops.max_turns, "turn"), "where": "desktops.max_turns of the config"}
    if limit is Limit.TIME:
        seconds = f"{desktops.trajectory_timeout_s:g} s"
        return {"words": seconds, "where": "desktops.trajectory_timeout_s of the config"}
    experiment = trajectory.experiment
    tokens = f"{experiment.settings.sampling.max_context_tokens} " if experiment else ""
    return {"words": f"{tokens}tokens", "where": "sampling.max_context_tokens of the config"}


def milestone_lane(trajectory: Trajectory) -> dict[str, Any]:
    """What `milestones.html` shows: each milestone of the task, with the turn behind which it was reached."""
    reached = {one["name"]: one["turn"] for one in trajectory.milestones}
    names = [one["name"] for one in trajectory.task.spec.get("milestones") or ()]
    last = max(1, trajectory.num_turns - 1)
    rows = [(name, reached.get(name), 100 * reached.get(name, 0) / last) for name in names]
    return {"milestones": rows, "num_reached": len(reached), "trajectory": trajectory}


MAX_STRETCHES = 8
"""Of a trajectory: those that changed most, so that hundreds of turns make no page of their own."""


def credit_bars(stretches: Sequence[Stretch]) -> list[dict[str, Any]]:
    """Value by turn as bars: each starts where the one before ended; percent of the shown range, with 0."""
    edges = [0.0, *itertools.accumulate(one.change for one in stretches)]
    low, span = min(edges), (max(edges) - min(edges)) or 1.0
    largest = sorted(stretches, key=lambda one: -abs(one.change))[:MAX_STRETCHES]
    return [
        {
            "stretch": one,
            "left": round(100 * (min(start, end) - low) / span, 2),
            "width": round(100 * abs(end - start) / span, 2),
            "zero": round(100 * (0 - low) / span, 2),
        }
        for one, start, end in zip(stretches, edges, edges[1:], strict=False)
        if one in largest
    ]


def reward_context(
    trajectory: Trajectory, turns: Sequence[TurnRecord | BriefTurn], credit: Sequence[Stretch] = ()
) -> dict[str, Any]:
    """The reward breakdown and what each turn was worth; while it runs, its turns' terms so far."""
    is_scored = TrajectoryStatus(trajectory.status).is_scored()
    terms = trajectory.terms if trajectory.terms else running_terms(turns)
    return {
        "trajectory": trajectory,
        "limit": limit_hit(trajectory),
        "is_scored": is_scored,
        "bars": waterfall(terms, trajectory.reward),
        "so_far": terms_total(terms) if terms and not is_scored else None,
        "credit": credit_bars(credit),
    }
