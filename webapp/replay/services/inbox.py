"""Which trajectories are offered to the replay inbox."""

from django.db import transaction

from training.contracts.types import Purpose, Source, TrajectoryStatus
from webapp.live.event_publishing import publish
from webapp.replay.automatic_checks import longest_still_run, signature_of
from webapp.replay.models import ReplayEntry
from webapp.replay.models.entries import stream_of
from webapp.replay.turn_edits import TurnEdit
from webapp.trajectories.models import Trajectory

ADMISSION_SCORE = 0.5
"""Trajectories that scored less never reach the inbox."""
TURN_COLUMNS = ("trajectory", "index", "frame", "action", "earlier_actions", "parse_error", "action_error")


# --- admission ---------------------------------------------------------------------------------------


def is_admissible(trajectory: Trajectory) -> bool:
    """Scored with at least ADMISSION_SCORE in a TRAIN group or as a branch, or a successful demonstration."""
    if not TrajectoryStatus(trajectory.status).is_scored() or (trajectory.score or 0.0) < ADMISSION_SCORE:
        return False
    is_demonstration = trajectory.purpose == Purpose.DEMONSTRATION or trajectory.source in (
        Source.HUMAN,
        Source.ORACLE,
    )
    return trajectory.purpose in (Purpose.TRAIN, Purpose.BRANCH) or is_demonstration


def offer_to_inbox(*, trajectory: Trajectory) -> ReplayEntry | None:
    """Put a successful trajectory into the inbox; None when it is not admissible. Repeating is harmless."""
    if not is_admissible(trajectory):
        return None
    # With the foreign key: a reverse relation reads it of every row, one by one when it is left out.
    turns = list(trajectory.turns.order_by("index").only(*TURN_COLUMNS))
    with transaction.atomic():
        entry, is_new = ReplayEntry.objects.get_or_create(
            trajectory=trajectory,
            part=0,
            defaults={
                "team_id": trajectory.team_id,
                "family": trajectory.family,
                "signature": signature_of(trajectory.task_id, turns),
                "num_still": longest_still_run(turns),
                "has_bad_turns": bool(TurnEdit().bad_turns(turns)),
            },
        )
        if is_new:
            publish(stream_of(trajectory.team_id), "entry.offered", {"entry": entry.pk})
    return entry
