"""The only door from the workers to the database: calls the web application's services."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from training.contracts.config import ExperimentConfig, GatewayConfig
from training.contracts.types import Observation, Purpose, RewardTerm, Source, Task, TrajectoryStatus, Turn
from training.rewards import Reward
from webapp import __version__
from webapp.experiments.models import Attempt, AttemptStatus, Experiment
from webapp.fleet import worker_reports
from webapp.fleet.models import Desktop, DesktopPhase, Worker
from webapp.replay import admission
from webapp.trajectories import branching, frames, parking, snapshots
from webapp.trajectories import lifecycle as trajectories
from webapp.trajectories.lifecycle.desktop_taken import hand_back_job
from webapp.trajectories.models import Trajectory as TrajectoryRow
from webapp.trajectories.row_to_types import turn_of
from workers import identity
from workers.desktops.host.messages import KeptSnapshot
from workers.desktops.leased_desktop import Frame
from workers.environments.contract import AtCapacity


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a branch starts."""

    snapshot: str
    """Name on this machine's desk host; "" when there is none any more."""
    turns: tuple[Turn, ...]
    """What happened before, in its parents."""
    text: str
    """What the agent is told at its first turn."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """All that the env worker needs to know of a claimed trajectory."""

    row: TrajectoryRow
    task: Task
    config: ExperimentConfig
    source: Source
    temperature: float
    policy_url: str
    policy_token: str
    branch: Branch | None = None
    """Set when it is continued from another trajectory's state."""


class NoPolicy(Exception):
    """Raised when the experiment's policy server is not (or no longer) there."""


def claim(trajectory_id: int) -> Assignment | None:
    """Take the trajectory for this worker; None when somebody else has it or it was cancelled."""
    worker = Worker.objects.filter(name=identity.current().name).first()
    if worker is None:
        me = identity.current()
        worker = worker_reports.beat_worker(
            name=me.name,
            queue=me.queue,
            host=me.host,
            pid=me.pid,
            slots=me.slots,
            version=__version__,
        )
    if worker.is_draining:
        hand_back_job(trajectory_id=trajectory_id)
        return None
    row = trajectories.claim_trajectory(trajectory_id=trajectory_id, worker=worker) or parking.claim_parked(
        trajectory_id=trajectory_id, worker=worker
    )
    if row is None:
        return None
    alone = {"desktops": row.group.desktops}
    config = ExperimentConfig.model_validate(row.experiment.config if row.experiment else alone)
    attempt = _running_attempt(row) if row.source == Source.POLICY else None
    return Assignment(
        row=row,
        task=Task.model_validate(row.task.spec),
        config=config,
        source=Source(row.source),
        temperature=row.group.temperature,
        policy_url=attempt.policy_url if attempt else "",
        policy_token=attempt.policy_token if attempt else "",
        branch=_branch_of(row) if row.purpose == Purpose.BRANCH else None,
    )


def _branch_of(row: TrajectoryRow) -> Branch:
    snapshot = row.group.snapshot
    return Branch(
        snapshot=snapshot.name if snapshot else "",
        turns=tuple(turn_of(turn) for turn in row.turns.filter(index__lt=row.group.branch_turn)),
        text=branching.first_text(row),
    )


def _running_attempt(row: TrajectoryRow) -> Attempt | None:
    running = Attempt.objects.filter(experiment_id=row.experiment_id, status=AttemptStatus.RUNNING)
    if row.purpose == Purpose.BRANCH:  # a person's wish, not the trainer's: any policy of the experiment
        return running.order_by("-number").first()
    return running.filter(number=row.group.attempt).first()


def begin_running(row: TrajectoryRow, desktop_id: str, provider: str, screen: tuple[int, int]) -> bool:
    """The desktop is set up; False when the trajectory was cancelled meanwhile."""
    worker = row.worker
    desktop: Desktop = worker_reports.record_desktop(
        name=desktop_id,
        phase=DesktopPhase.LEASED,
        host=identity.current().host,
        provider=provider,
        width=screen[0],
        height=screen[1],
        worker=worker,
    )
    return trajectories.move_trajectory(trajectory=row, to=TrajectoryStatus.RUNNING, desktop=desktop)


def desktop_given_up(desktop_id: str) -> None:
    """The slot has closed it: that is the end of a remote service's desktop."""
    worker_reports.end_remote_desktop(name=desktop_id)


def begin_evaluating(row: TrajectoryRow) -> bool:
    return trajectories.move_trajectory(trajectory=row, to=TrajectoryStatus.EVALUATING)


def open_turn(row: TrajectoryRow, index: int, frame: Frame, text: str, source: Source) -> Observation:
    """Store the screenshot, then the turn that shows it."""
    sha = frames.store_frame(row.team_id, frame.png, frame.image())
    observation = Observation(sha256=sha, width=frame.width, height=frame.height, text=text)
    observed_at = datetime.fromtimestamp(frame.taken_at, tz=timezone.get_current_timezone())
    trajectories.open_turn(
        trajectory=row, index=index, source=source, observation=observation, observed_at=observed_at
    )
    return observation


def close_turn(row: TrajectoryRow, turn: Turn, thought: str, completed_at: datetime) -> None:
    trajectories.close_turn(trajectory=row, turn=turn, thought=thought, completed_at=completed_at)


def finish(row: TrajectoryRow, status: TrajectoryStatus, score: float, result: Reward) -> None:
    """Record score and reward; offer a success to the replay inbox."""
    turn_terms = {index: _plain(terms) for index, terms in enumerate(result.turn_terms) if terms}
    trajectories.record_turn_terms(trajectory=row, terms=turn_terms)
    ended = trajectories.end_trajectory(
        trajectory_id=row.pk, status=status, score=score, reward=result.reward, terms=_plain(result.terms)
    )
    row.refresh_from_db()
    if ended and (row.purpose in (Purpose.TRAIN, Purpose.BRANCH) or row.source == Source.HUMAN):
        admission.offer_to_inbox(trajectory=row)


def screenshot(observation: Observation) -> bytes | None:
    """The lossless PNG of a recorded observation; None when it had none."""
    return frames.read_frame(observation.sha256) if observation.sha256 else None


# --- snapshots ---------------------------------------------------------------------------------------


def wants_snapshots(row: TrajectoryRow) -> bool:
    """True when a person switched them on."""
    return snapshots.wants_snapshots(trajectory_id=row.pk)


def snapshot_kept(row: TrajectoryRow, index: int, kept: KeptSnapshot, took_s: float) -> None:
    snapshots.record_snapshot(
        trajectory_id=row.pk,
        turn=index,
        host=identity.current().host,
        name=kept.name,
        size_mb=kept.size_mb,
        pause_s=kept.pause_s,
        took_s=round(took_s, 3),
    )


def snapshot_failed(row: TrajectoryRow, problem: str) -> None:
    """The trajectory goes on without it."""
    snapshots.record_problem(trajectory_id=row.pk, problem=problem)


def snapshot_lost(name: str) -> None:
    """This machine's desk host has it no more."""
    snapshots.lose_snapshot(host=identity.current().host, name=name)


def orphaned_snapshots(kept: Iterable[KeptSnapshot], asked_at: datetime) -> set[str]:
    """Of what this machine's desk host keeps, what no row knows; rows of what it keeps no more are gone."""
    ages_s = {snapshot.name: snapshots.age_s(snapshot.created_at) for snapshot in kept}
    return snapshots.settle(host=identity.current().host, ages_s=ages_s, asked_at=asked_at)


def _plain(terms: Iterable[RewardTerm]) -> list[dict[str, Any]]:
    return [term.model_dump(mode="json") for term in terms]


def key_of(row: TrajectoryRow) -> str:
    """The trajectory's name towards whoever lends desktops, the same at every attempt."""
    return f"trajectory-{row.pk}"


def trajectory_keys() -> set[str]:
    """Keys of all trajectories that have not ended."""
    return {key_of(row) for row in TrajectoryRow.objects.filter(ended_at=None).only("pk")}


def gateways_in_use() -> list[GatewayConfig]:
    """The clusters of experiments that ran in the last day."""
    recent = TrajectoryRow.objects.filter(created_at__gt=timezone.now() - timedelta(days=1))
    rows = Experiment.objects.filter(
        config__desktops__provider="gateway", pk__in=recent.values("experiment_id")
    )
    return list({ExperimentConfig.model_validate(row.config).desktops.gateway for row in rows})


def park(row: TrajectoryRow, error: AtCapacity, limit_s: float) -> None:
    """No desktop is to be had now: the trajectory waits without a slot; `limit_s` 0 = as long as it takes."""
    waited_s = (timezone.now() - row.parked_at).total_seconds() if row.parked_at else 0.0
    if limit_s and waited_s > limit_s:
        errored(row, "parked_too_long", f"no desktop for {waited_s:.0f} s: {error}")
        return
    notice = parking.Notice(
        reason=str(error),
        position=error.position,
        wait_s=error.wait_s,
        retry_after_s=error.retry_after_s,
    )
    if not parking.park_trajectory(trajectory=row, notice=notice):
        errored(row, "desktop_quota", str(error))  # it ran already; a cancelled one stays cancelled


def unpark(row: TrajectoryRow) -> bool:
    """There is a desktop for a trajectory that may have been parked; False when it was cancelled."""
    return row.status != TrajectoryStatus.PARKED or parking.unpark_trajectory(trajectory=row)


def errored(row: TrajectoryRow, kind: str, error: str) -> None:
    """Infrastructure failed: never a reward; the place is re-run."""
    trajectories.end_trajectory(
        trajectory_id=row.pk, status=TrajectoryStatus.ERRORED, error=error[:4000], error_kind=kind
    )


def cancelled(row: TrajectoryRow) -> None:
    trajectories.end_trajectory(trajectory_id=row.pk, status=TrajectoryStatus.CANCELLED)


def is_stopped(row: TrajectoryRow) -> bool:
    """True when somebody ended the trajectory while it ran."""
    status = TrajectoryRow.objects.values_list("status", flat=True).get(pk=row.pk)
    return TrajectoryStatus(status).is_final()
