"""Transcripts as scanners read them: what was asked, said, done and seen. No score, reward or verdict.

`Paid` adds rewards for the shipped rules that are about them; what goes to a model is a `Transcript`.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from training.contracts.types import TrajectoryStatus
from webapp.lib.statements.json_keys import text_of
from webapp.trajectories.action_words import actions_caption, actions_of
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.trajectories.row_to_types import turn_limit
from webapp.trajectories.turn_display import terms_total

COLUMNS = (
    "trajectory_id",
    "index",
    "frame",
    "observation_text",
    text_of("completion__text"),
    "thought",
    "action",
    "parse_error",
    "action_error",
    "screen_changed",
    "earlier_actions",
    "terms",
)


@dataclass(frozen=True, slots=True)
class TranscriptTurn:
    index: int
    frame: str
    """sha256 of the screen before its action."""
    screen_text: str
    said: str
    """The completion as it was written, else the thought that a person or program left."""
    action: dict[str, Any] | None
    errors: str
    """What could not be parsed or done."""
    screen_changed: bool | None
    earlier_actions: list[dict[str, Any]] | None = None

    @property
    def did(self) -> str:
        """Its actions in words."""
        return actions_caption(actions_of(self)) or "no action"


@dataclass(frozen=True, slots=True)
class Transcript:
    trajectory_id: int
    instruction: str
    turns: tuple[TranscriptTurn, ...]
    final_frame: str
    """The screen after the last action; "" when none was taken."""
    max_turns: int
    was_ended: bool
    """By the agent; False when a limit did."""


@dataclass(frozen=True, slots=True)
class Paid:
    """A transcript with what was paid for it, and where it went wrong."""

    transcript: Transcript
    reward: float
    of_turns: tuple[float, ...]
    """Contributions of the turns' own terms, in the order of the turns."""
    mistake_turn: int | None = None
    """Index of the first turn that lost decisively, by the states that its group shared."""


def read_transcripts(pks: Sequence[int]) -> list[Paid]:
    """In the order of `pks`; two queries."""
    rows = Trajectory.objects.filter(pk__in=pks).select_related("task", "experiment", "group")
    found = {row.pk: row for row in rows.defer("terms", "checks", "score")}
    turns: dict[int, list[TranscriptTurn]] = defaultdict(list)
    paid: dict[int, list[float]] = defaultdict(list)
    columns = TurnRecord.objects.filter(trajectory_id__in=pks).order_by("trajectory_id", "index")
    for (
        pk,
        index,
        frame,
        screen_text,
        text,
        thought,
        action,
        *problems,
        changed,
        earlier,
        terms,
    ) in columns.values_list(*COLUMNS):
        errors = "; ".join(filter(None, problems))
        said = (text or thought) if action or text else thought
        turn = TranscriptTurn(index, frame, screen_text, said or "", action, errors, changed, earlier)
        turns[pk].append(turn)
        paid[pk].append(terms_total(terms))
    return [
        Paid(
            _transcript(found[pk], turns[pk]),
            found[pk].reward or 0.0,
            tuple(paid[pk]),
            found[pk].mistake_turn,
        )
        for pk in pks
        if pk in found
    ]


def _transcript(row: Trajectory, turns: list[TranscriptTurn]) -> Transcript:
    return Transcript(
        trajectory_id=row.pk,
        instruction=row.task.instruction,
        turns=tuple(turns),
        final_frame=row.final_frame,
        max_turns=turn_limit(row),
        was_ended=row.status == TrajectoryStatus.TERMINATED,
    )
