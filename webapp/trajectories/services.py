"""Writes about groups, trajectories and turns.

Invariants: a trajectory is claimed by exactly one worker; an errored trajectory is never
scored, its place in the group is re-run up to `retries` times; a trajectory in which a person acted
leaves its group, and its place is run again; a group finishes once, when every place is final, and
gets the next `finished_seq` of its experiment.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean, stdev
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from training.config import ExperimentConfig
from training.types import (
    TRAJECTORY_TRANSITIONS,
    ActionKind,
    MemberUpdate,
    Observation,
    Purpose,
    Source,
    TrajectoryStatus,
    Turn,
)
from webapp.experiments.models import Experiment, TaskRecord
from webapp.experiments.services import stream_of as experiment_stream
from webapp.fleet.models import Desktop, Worker
from webapp.live.services import publish
from webapp.trajectories.models import Group, Trajectory, TurnRecord
from webapp.trajectories.pump import pump

HEARTBEAT_TIMEOUT = timedelta(seconds=10)
"""An env worker beats every 2 s for every trajectory that it runs."""
RUNNING = (TrajectoryStatus.RESETTING, TrajectoryStatus.RUNNING, TrajectoryStatus.EVALUATING)
DEFAULT_RETRIES = 2


def stream_of(trajectory_id: int) -> str:
    """Name of the trajectory's event stream."""
    return f"trajectory.{trajectory_id}"


# --- groups ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GroupRequest:
    """What to sample: `size` trajectories of `task`."""

    task: TaskRecord
    size: int
    purpose: Purpose
    source: Source = Source.POLICY
    step: int = 0
    temperature: float = 1.0
    policy_version: int | None = None


@transaction.atomic
def create_group(
    *, request: GroupRequest, team_id: int, experiment: Experiment | None = None, attempt: int = 0
) -> Group:
    """Queue the trajectories of a group."""
    shared = {
        "team_id": team_id,
        "experiment": experiment,
        "task": request.task,
        "purpose": request.purpose,
        "source": request.source,
        "step": request.step,
    }
    group = Group.objects.create(
        **shared, attempt=attempt, size=request.size, temperature=request.temperature
    )
    Trajectory.objects.bulk_create(
        Trajectory(
            **shared,
            group=group,
            member=member,
            family=request.task.family,
            policy_version=request.policy_version,
        )
        for member in range(request.size)
    )
    if experiment:
        publish(
            experiment_stream(experiment.pk),
            "group.created",
            {
                "group": group.pk,
                "task": request.task.task_id,
                "size": request.size,
                "purpose": request.purpose,
            },
        )
    transaction.on_commit(pump)
    return group


def cancel_group(*, group: Group) -> None:
    """Stop a group: waiting members at once, running ones at their next turn.

    One transaction per member: holding several trajectories' streams together with the experiment's
    could deadlock with a worker that is recording a turn.
    """
    Group.objects.filter(pk=group.pk).update(is_cancelled=True)
    for trajectory in group.trajectories.exclude(status__in=_final_values()):
        end_trajectory(trajectory_id=trajectory.pk, status=TrajectoryStatus.CANCELLED)


def cancel_groups_of(*, experiment_id: int, before_attempt: int | None = None) -> int:
    """Cancel the unfinished groups of an experiment (of earlier attempts only, when given)."""
    groups = Group.objects.filter(experiment_id=experiment_id, finished_at=None, is_cancelled=False)
    if before_attempt is not None:
        groups = groups.filter(attempt__lt=before_attempt)
    unfinished = list(groups)
    for group in unfinished:
        cancel_group(group=group)
    return len(unfinished)


def _final_values() -> list[str]:
    return [status.value for status in TrajectoryStatus if status.is_final()]


# --- the life of a trajectory ------------------------------------------------------------------------


def claim_trajectory(*, trajectory_id: int, worker: Worker) -> Trajectory | None:
    """Take a queued trajectory; None when it was cancelled or another worker has it."""
    now = timezone.now()
    with transaction.atomic():
        claimed = Trajectory.objects.filter(pk=trajectory_id, status=TrajectoryStatus.QUEUED).update(
            status=TrajectoryStatus.RESETTING, worker=worker, heartbeat_at=now, started_at=now
        )
        if not claimed:
            return None
        trajectory = Trajectory.objects.select_related("group", "task", "experiment").get(pk=trajectory_id)
        announce(trajectory, TrajectoryStatus.RESETTING)
    return trajectory


def move_trajectory(*, trajectory: Trajectory, to: TrajectoryStatus, desktop: Desktop | None = None) -> bool:
    """Next status of a running trajectory; False when it was cancelled meanwhile."""
    values: dict[str, Any] = {"status": to, "heartbeat_at": timezone.now()}
    if desktop is not None:
        values["desktop"] = desktop
    with transaction.atomic():
        moved = Trajectory.objects.filter(pk=trajectory.pk, status__in=_sources_of(to)).update(**values)
        if moved:
            announce(trajectory, to)
    return bool(moved)


def _sources_of(to: TrajectoryStatus) -> list[str]:
    return [status.value for status, targets in TRAJECTORY_TRANSITIONS.items() if to in targets]


def announce(trajectory: Trajectory, status: TrajectoryStatus, **more: Any) -> None:
    """Tell the watchers of the trajectory and of its experiment; inside the writing transaction."""
    payload = {"trajectory": trajectory.pk, "group": trajectory.group_id, "status": status, **more}
    publish(stream_of(trajectory.pk), "trajectory.updated", payload)
    if trajectory.experiment_id:
        publish(experiment_stream(trajectory.experiment_id), "trajectory.updated", payload)


def beat_trajectories(trajectory_ids: list[int]) -> None:
    """Heartbeat of an env worker for all that it runs."""
    held = Trajectory.objects.filter(pk__in=trajectory_ids, status__in=(*RUNNING, TrajectoryStatus.PARKED))
    held.update(heartbeat_at=timezone.now())


def open_turn(
    *, trajectory: Trajectory, index: int, source: Source, observation: Observation, observed_at: datetime
) -> None:
    """Record a turn's screenshot as soon as it is taken."""
    with transaction.atomic():
        TurnRecord.objects.create(
            trajectory=trajectory,
            index=index,
            source=source,
            frame=observation.sha256,
            width=observation.width,
            height=observation.height,
            observation_text=observation.text,
            observed_at=observed_at,
        )
        Trajectory.objects.filter(pk=trajectory.pk).update(num_turns=index + 1, last_frame=observation.sha256)
        payload = {
            "trajectory": trajectory.pk,
            "index": index,
            "frame": observation.sha256,
            "width": observation.width,
            "height": observation.height,
            "observed_at_ms": int(observed_at.timestamp() * 1000),
        }
        publish(stream_of(trajectory.pk), "turn.added", payload)
        if trajectory.experiment_id:
            publish(experiment_stream(trajectory.experiment_id), "turn.added", payload)


def close_turn(*, trajectory: Trajectory, turn: Turn, thought: str, completed_at: datetime) -> None:
    """Record what the policy said and what became of it."""
    with transaction.atomic():
        TurnRecord.objects.filter(trajectory=trajectory, index=turn.index).update(
            completion=turn.completion.model_dump(mode="json") if turn.completion else None,
            thought=thought,
            action=turn.action.model_dump(mode="json", exclude_defaults=True) if turn.action else None,
            dialect=turn.dialect,
            parse_error=turn.parse_error or "",
            action_error=turn.action_error or "",
            screen_changed=turn.screen_changed,
            completed_at=completed_at,
            acted_at=timezone.now(),
        )
        if turn.parse_error:
            Trajectory.objects.filter(pk=trajectory.pk).update(num_parse_errors=F("num_parse_errors") + 1)
        if turn.action is not None and turn.action.kind is ActionKind.TERMINATE:
            _show_last_deed(trajectory, turn.index)
        publish(stream_of(trajectory.pk), "turn.updated", {"trajectory": trajectory.pk, "index": turn.index})


def _show_last_deed(trajectory: Trajectory, terminate_index: int) -> None:
    """Lists show the screen of the last real action: after it, the window is often gone."""
    frame = (
        TurnRecord.objects.filter(trajectory=trajectory, index=terminate_index - 1)
        .values_list("frame", flat=True)
        .first()
    )
    if frame:
        Trajectory.objects.filter(pk=trajectory.pk).update(last_frame=frame)


def record_turn_terms(*, trajectory: Trajectory, terms: dict[int, list[dict[str, Any]]]) -> None:
    """Per-turn reward terms, known when the trajectory is scored. turn index -> terms"""
    for index, of_turn in terms.items():
        TurnRecord.objects.filter(trajectory=trajectory, index=index).update(terms=of_turn)


def end_trajectory(
    *,
    trajectory_id: int,
    status: TrajectoryStatus,
    score: float | None = None,
    reward: float | None = None,
    terms: list[dict[str, Any]] | None = None,
    error: str = "",
    error_kind: str = "",
) -> bool:
    """Final status; an errored place is queued again or, when retries are used up, stays empty."""
    assert status.is_final()
    with transaction.atomic():
        changed = Trajectory.objects.filter(pk=trajectory_id, status__in=_sources_of(status)).update(
            status=status,
            score=score,
            reward=reward,
            terms=terms or [],
            error=error,
            error_kind=error_kind,
            ended_at=timezone.now(),
        )
        if not changed:
            return False
        trajectory = Trajectory.objects.select_related("group", "experiment").get(pk=trajectory_id)
        announce(trajectory, status, reward=reward, score=score, error=error[:200])
        is_counted = not has_left_its_group(trajectory)
        if is_counted and not (status == TrajectoryStatus.ERRORED and _rerun(trajectory)):
            _count_place(trajectory, scored=status.is_scored())
    transaction.on_commit(pump)
    return True


def take_out_of_group(*, trajectory_id: int) -> None:
    """A person acts in this trajectory: it is no sample of the policy, and its place is run again."""
    trajectory = Trajectory.objects.select_related("group", "experiment").get(pk=trajectory_id)
    if trajectory.source == Source.HUMAN:
        return
    with transaction.atomic():
        running = Trajectory.objects.filter(pk=trajectory_id, status__in=RUNNING)
        if not running.update(source=Source.HUMAN):
            return
        announce(trajectory, TrajectoryStatus(trajectory.status), source=Source.HUMAN)
        if not trajectory.group.is_cancelled:
            _queue_place(trajectory, tries=trajectory.tries)
    transaction.on_commit(pump)


def has_left_its_group(trajectory: Trajectory) -> bool:
    """True when a person took the trajectory over: another one has its place."""
    return trajectory.source == Source.HUMAN and trajectory.group.source != Source.HUMAN


def members_that_count(group: Group) -> QuerySet[Trajectory]:
    """All tries of a group's places, without those that a person took over."""
    members = group.trajectories.all()
    return members if group.source == Source.HUMAN else members.exclude(source=Source.HUMAN)


def _rerun(trajectory: Trajectory) -> bool:
    """Queue the same place again; False when its retries are used up."""
    group = trajectory.group
    if group.is_cancelled or trajectory.tries >= _retries(trajectory.experiment):
        return False
    if trajectory.source == Source.HUMAN:
        return False  # the person who demonstrated is not waiting for another desktop
    _queue_place(trajectory, tries=trajectory.tries + 1)
    return True


def _queue_place(trajectory: Trajectory, *, tries: int) -> None:
    Trajectory.objects.create(
        team_id=trajectory.team_id,
        experiment=trajectory.experiment,
        group_id=trajectory.group_id,
        task_id=trajectory.task_id,
        family=trajectory.family,
        purpose=trajectory.purpose,
        source=trajectory.group.source,
        member=trajectory.member,
        tries=tries,
        retry_of=trajectory,
        step=trajectory.step,
        policy_version=trajectory.policy_version,
    )


def _retries(experiment: Experiment | None) -> int:
    if experiment is None:
        return DEFAULT_RETRIES
    return ExperimentConfig.model_validate(experiment.config).desktops.retries


def _count_place(trajectory: Trajectory, *, scored: bool) -> None:
    """One place of the group is final; the last one finishes the group."""
    Group.objects.filter(pk=trajectory.group_id).update(
        num_final=F("num_final") + 1, num_scored=F("num_scored") + int(scored)
    )
    group = Group.objects.get(pk=trajectory.group_id)
    counted = members_that_count(group).filter(reward__isnull=False)
    rewards = list(counted.values_list("reward", flat=True))
    values: dict[str, Any] = {
        "reward_mean": fmean(rewards) if rewards else None,
        "reward_std": stdev(rewards) if len(rewards) > 1 else None,
    }
    finished = group.num_final >= group.size
    if finished:
        values["finished_at"] = timezone.now()
    Group.objects.filter(pk=group.pk).update(**values)
    if not group.experiment_id:
        return
    seq = publish(
        experiment_stream(group.experiment_id),
        "group.finished" if finished else "group.updated",
        {"group": group.pk, "num_final": group.num_final, "num_scored": group.num_scored},
    )
    if finished:
        Group.objects.filter(pk=group.pk).update(finished_seq=seq)


def lose_stale_trajectories() -> list[int]:
    """End what dead env workers were running as errored (their places are re-run elsewhere)."""
    limit = timezone.now() - HEARTBEAT_TIMEOUT
    stale = Trajectory.objects.filter(status__in=RUNNING, heartbeat_at__lt=limit).select_related("worker")
    lost = []
    for trajectory in stale:
        name = trajectory.worker.name if trajectory.worker else "its worker"
        if end_trajectory(
            trajectory_id=trajectory.pk,
            status=TrajectoryStatus.ERRORED,
            error=f"env worker {name} stopped answering",
            error_kind="worker_lost",
        ):
            lost.append(trajectory.pk)
    return lost


# --- what the learner says of members ----------------------------------------------------------------


def record_member_updates(*, experiment_id: int, updates: list[MemberUpdate]) -> None:
    """Advantages and logprob gaps, once the step used the group."""
    with transaction.atomic():
        for update in updates:
            Trajectory.objects.filter(pk=update.trajectory_id, experiment_id=experiment_id).update(
                advantage=update.advantage, logprob_gap=update.policy_logprob_gap
            )
            publish(
                stream_of(update.trajectory_id),
                "trajectory.updated",
                {"trajectory": update.trajectory_id, "advantage": update.advantage},
            )
        if updates:
            publish(
                experiment_stream(experiment_id),
                "members.updated",
                {"trajectories": [update.trajectory_id for update in updates][:64]},
            )
