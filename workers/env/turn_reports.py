"""Turns as they are reported: with the screenshot that the agent or a person saw."""

from __future__ import annotations

from datetime import UTC, datetime

from training.contracts.types import Observation, Source
from webapp.worker_door.assignments import ClaimedTrajectory
from webapp.worker_door.trajectories import open_turn
from workers.desktops.frame import Frame
from workers.reports.current import reports


def begin_turn(row: ClaimedTrajectory, index: int, frame: Frame, text: str, source: Source) -> Observation:
    """Report the screenshot and the turn that shows it."""
    observation = Observation(sha256=frame.sha256, width=frame.width, height=frame.height, text=text)
    observed_at = datetime.fromtimestamp(frame.taken_at, tz=UTC)
    reports().report_with_screen(
        row.team_id, frame, open_turn, row.pk, index, source, observation, observed_at
    )
    return observation
