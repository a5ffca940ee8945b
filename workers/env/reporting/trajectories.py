"""What becomes of a claimed trajectory: its status, turns, score and reward."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from training.contracts.context_fingerprint import shared_fingerprint
from training.contracts.turn_trace import SpentMs
from training.contracts.types import (
    Limit,
    Observation,
    Purpose,
    RewardTerm,
    Source,
    TrajectoryStatus,
    Turn,
)
from training.rewards import Reward
from webapp.fleet import worker_reports
from webapp.fleet.models import Desktop, DesktopPhase
from webapp.lib import patience
from webapp.lib.patience import patient
from webapp.replay import inbox_admission
from webapp.trajectories import frames, live_pictures
from webapp.trajectories import lifecycle as trajectories
from workers import identity
from workers.desktops.frame import Frame
from workers.env.reporting.claims import TrajectoryRow
from workers.env.running_trajectories import all_held


def working_time() -> float:
    """A clock in seconds that stands still while this thread waits for database or disk."""
    return patience.working_time()


def kind_of(error: Exception) -> str:
    """What an error that nothing else explains is recorded as."""
    if patience.is_disk_full(error):
        return "disk_full"
    return "database" if patience.passes(error) else "worker"


def beat_held() -> None:
    """The heartbeat of all trajectories that this process runs."""
    if running := all_held():
        trajectories.beat_trajectories(running)


@patient
def begin_running(row: TrajectoryRow, desktop_id: str, provider: str, screen: tuple[int, int]) -> bool:
    """The desktop is set up; False when the trajectory was cancelled meanwhile."""
    desktop: Desktop = worker_reports.record_desktop(
        name=desktop_id,
        phase=DesktopPhase.LEASED,
        host=identity.current().host,
        provider=provider,
        width=screen[0],
        height=screen[1],
        worker=row.worker,
    )
    return trajectories.move_trajectory(trajectory=row, to=TrajectoryStatus.RUNNING, desktop=desktop)


@patient
def begin_evaluating(row: TrajectoryRow) -> bool:
    return trajectories.move_trajectory(trajectory=row, to=TrajectoryStatus.EVALUATING)


def show_screen(row: TrajectoryRow, index: int, frame: Frame) -> None:
    """To those who watch, at once; recorded it is by `open_turn`."""
    live_pictures.show_screen(
        trajectory_id=row.pk,
        index=index,
        sha256=frame.sha256,
        png=frame.png,
        image=frame.image(),
        observed_at=frame.taken_at,
    )


@patient
def open_turn(row: TrajectoryRow, index: int, frame: Frame, text: str, source: Source) -> Observation:
    """Store the screenshot, then the turn that shows it."""
    observation = Observation(sha256=frame.sha256, width=frame.width, height=frame.height, text=text)
    observed_at = datetime.fromtimestamp(frame.taken_at, tz=UTC)
    image = frame.image()
    frames.write_files(frame.png, image, frame.sha256)
    with transaction.atomic():
        frames.record_frame(row.team_id, image, frame.sha256)
        trajectories.open_turn(
            trajectory=row, index=index, source=source, observation=observation, observed_at=observed_at
        )
    return observation


@patient
def close_turn(
    row: TrajectoryRow, turn: Turn, thought: str, completed_at: datetime, spent_ms: SpentMs | None = None
) -> None:
    trajectories.close_turn(
        trajectory=row, turn=turn, thought=thought, completed_at=completed_at, spent_ms=spent_ms
    )


@patient
def record_final_screen(row: TrajectoryRow, frame: Frame) -> None:
    """What the evaluator is about to judge."""
    sha = frames.store_frame(row.team_id, frame.png, frame.image(), frame.sha256)
    trajectories.record_final_frame(trajectory=row, frame=sha)


@patient
def finish(
    row: TrajectoryRow,
    status: TrajectoryStatus,
    turns: Iterable[Turn],
    score: float,
    result: Reward,
    limit: Limit | None = None,
) -> None:
    """Record score, reward and what made the tokens of `turns`; offer a success to the replay inbox."""
    turn_terms = {index: _plain(terms) for index, terms in enumerate(result.turn_terms) if terms}
    with transaction.atomic():
        trajectories.record_turn_terms(trajectory=row, terms=turn_terms)
        trajectories.record_fingerprint(trajectory=row, fingerprint=shared_fingerprint(turns))
        trajectories.end_trajectory(
            trajectory_id=row.pk,
            status=status,
            score=score,
            reward=result.reward,
            terms=_plain(result.terms),
            limit=limit,
        )
    row.refresh_from_db()
    if row.status == status and (
        row.purpose in (Purpose.TRAIN, Purpose.BRANCH) or row.source == Source.HUMAN
    ):
        inbox_admission.offer_to_inbox(trajectory=row)


def screenshot(observation: Observation) -> bytes | None:
    """The lossless PNG of a recorded observation; None when it had none."""
    return frames.read_frame(observation.sha256) if observation.sha256 else None


@patient
def end_errored(row: TrajectoryRow, kind: str, error: str) -> None:
    """Infrastructure failed: never a reward; its place in the group is run again."""
    trajectories.end_trajectory(
        trajectory_id=row.pk, status=TrajectoryStatus.ERRORED, error=error[:4000], error_kind=kind
    )


@patient
def end_cancelled(row: TrajectoryRow) -> None:
    trajectories.end_trajectory(trajectory_id=row.pk, status=TrajectoryStatus.CANCELLED)


@patient
def has_ended(row: TrajectoryRow) -> bool:
    """True when the trajectory was ended from outside while it ran."""
    status = TrajectoryRow.objects.values_list("status", flat=True).get(pk=row.pk)
    return TrajectoryStatus(status).is_final()


def _plain(terms: Iterable[RewardTerm]) -> list[dict[str, Any]]:
    return [term.model_dump(mode="json") for term in terms]
