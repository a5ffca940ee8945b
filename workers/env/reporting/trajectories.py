"""What becomes of a claimed trajectory: its status, turns, score and reward."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from django.db import transaction

from training.contracts.context_fingerprint import shared_fingerprint
from training.contracts.metric_finding import MetricFinding
from training.contracts.milestone import ReachedMilestone
from training.contracts.turn_trace import SpentMs
from training.contracts.types import Limit, Observation, Source, TrajectoryStatus, Turn
from training.rewards import Reward
from webapp.lib import outage_retries
from webapp.trajectories import live_pictures
from webapp.trajectories.services import frames
from webapp.worker_door import trajectories as door
from webapp.worker_door.trajectories import TrajectoryNow
from workers import identity
from workers.desktops.frame import Frame
from workers.door.spool import SpooledFrame
from workers.door.through import https_door, is_joined, tell_with_frame, through
from workers.env.reporting.claims import ClaimedTrajectory
from workers.env.running_trajectories import all_held

_beat = through(door.beat_trajectories)
_look_at = through(door.look_at)
_begin_running = through(door.begin_running)
_begin_evaluating = through(door.begin_evaluating)
_close_turn = through(door.close_turn)
_record_final_screen = through(door.record_final_screen)
_record_checks = through(door.record_checks)
_record_milestones = through(door.record_milestones)
_finish = through(door.finish)
_end_errored = through(door.end_errored)
_end_cancelled = through(door.end_cancelled)
_read_screenshot = through(door.read_screenshot)
_store_frame = outage_retries.patient(frames.store_frame)

_last_look: dict[int, TrajectoryNow] = {}
"""Of a joined host: what the server said at the last heartbeat, so that no turn waits for it."""


def working_time() -> float:
    """A clock in seconds that stands still while this thread waits for database or disk."""
    return outage_retries.working_time()


def kind_of(error: Exception) -> str:
    """What an error that nothing else explains is recorded as."""
    if outage_retries.is_disk_full(error):
        return "disk_full"
    return "database" if outage_retries.passes(error) else "worker"


def beat_held() -> None:
    """The heartbeat of all trajectories that this process runs, or of which reports are on their way."""
    running = all_held()
    if not is_joined():
        if running:
            _beat(running)
        return
    held = sorted({*running, *https_door().spool.trajectories()})
    if held:
        _beat(held)
        looked = _look_at(held)
        _last_look.clear()
        _last_look.update(looked)


def look_at(trajectory_id: int) -> TrajectoryNow:
    """What was decided elsewhere; from a joined host as of the last heartbeat that came through."""
    found = _last_look if is_joined() else _look_at([trajectory_id])
    return found.get(trajectory_id, TrajectoryNow())


def has_ended(row: ClaimedTrajectory) -> bool:
    """True when the trajectory was ended from outside while it ran."""
    return look_at(row.pk).has_ended


def begin_running(row: ClaimedTrajectory, desktop_id: str, provider: str, screen: tuple[int, int]) -> bool:
    """The desktop is set up; False when the trajectory was cancelled meanwhile."""
    _begin_running(row.pk, desktop_id, identity.current().host, provider, screen)
    return not has_ended(row)


def begin_evaluating(row: ClaimedTrajectory) -> bool:
    """False when it was cancelled meanwhile."""
    _begin_evaluating(row.pk)
    return not has_ended(row)


def show_screen(row: ClaimedTrajectory, index: int, frame: Frame) -> None:
    """To those who watch, at once; recorded it is by `open_turn`. From a joined host they come together."""
    if is_joined():
        return
    live_pictures.show_screen(
        trajectory_id=row.pk,
        index=index,
        sha256=frame.sha256,
        png=frame.png,
        image=frame.image(),
        observed_at=frame.taken_at,
    )


def open_turn(row: ClaimedTrajectory, index: int, frame: Frame, text: str, source: Source) -> Observation:
    """Store the screenshot, then the turn that shows it."""
    observation = Observation(sha256=frame.sha256, width=frame.width, height=frame.height, text=text)
    observed_at = datetime.fromtimestamp(frame.taken_at, tz=UTC)
    if is_joined():
        spooled = SpooledFrame(row.team_id, frame.sha256, frame.png)
        tell_with_frame(door.open_turn, spooled, row.pk, index, source, observation, observed_at)
    else:
        _open_here(row, index, frame, source, observation, observed_at)
    return observation


@outage_retries.patient
def _open_here(
    row: ClaimedTrajectory,
    index: int,
    frame: Frame,
    source: Source,
    observation: Observation,
    observed_at: datetime,
) -> None:
    image = frame.image()
    frames.write_files(frame.png, image, frame.sha256)
    with transaction.atomic():
        frames.record_frame(row.team_id, image, frame.sha256)
        door.open_turn(row.pk, index, source, observation, observed_at)


def close_turn(
    row: ClaimedTrajectory,
    turn: Turn,
    thought: str,
    completed_at: datetime,
    spent_ms: SpentMs | None = None,
) -> None:
    _close_turn(row.pk, turn, thought, completed_at, spent_ms)


def record_final_screen(row: ClaimedTrajectory, frame: Frame) -> None:
    """What the evaluator is about to judge."""
    if is_joined():
        spooled = SpooledFrame(row.team_id, frame.sha256, frame.png)
        tell_with_frame(door.record_final_screen, spooled, row.pk, frame.sha256)
        return
    _store_frame(row.team_id, frame.png, frame.image(), frame.sha256)
    _record_final_screen(row.pk, frame.sha256)


def record_checks(row: ClaimedTrajectory, checks: Sequence[MetricFinding]) -> None:
    """What the evaluator looked at, for people."""
    if checks:
        _record_checks(row.pk, list(checks))


def record_milestones(row: ClaimedTrajectory, reached: Sequence[ReachedMilestone]) -> None:
    """All that were reached up to now."""
    _record_milestones(row.pk, list(reached))


def finish(
    row: ClaimedTrajectory,
    status: TrajectoryStatus,
    turns: Iterable[Turn],
    score: float,
    result: Reward,
    limit: Limit | None = None,
) -> None:
    """Record score, reward and what made the tokens of `turns`; offer a success to the replay inbox."""
    turn_terms = {index: list(terms) for index, terms in enumerate(result.turn_terms) if terms}
    fingerprint = shared_fingerprint(turns)
    _finish(row.pk, status, score, result.reward, list(result.terms), turn_terms, fingerprint, limit)


def screenshot(observation: Observation) -> bytes | None:
    """The lossless PNG of a recorded observation; None when it had none."""
    return _read_screenshot(observation.sha256) if observation.sha256 else None


def end_errored(row: ClaimedTrajectory, kind: str, error: str) -> None:
    """Infrastructure failed: never a reward; its place in the group is run again."""
    _end_errored(row.pk, kind, error)


def end_cancelled(row: ClaimedTrajectory) -> None:
    _end_cancelled(row.pk)
