"""Turns as they are seen, acted and scored."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from training.contracts.metric_finding import MetricFinding
from training.contracts.milestone import ReachedMilestone
from training.contracts.turn_trace import SpentMs
from training.contracts.types import Action, Observation, Source, TrajectoryStatus, Turn
from webapp.lib.remote_calls import OwnOpenTrajectory, env_host
from webapp.lib.statements.single_rows import insert_row, update_each, update_row
from webapp.live.event_publishing import publish, publish_to
from webapp.trajectories.models import Trajectory, TurnRecord
from webapp.trajectories.pictures.telling_frame import most_telling
from webapp.trajectories.services.announcements import announce, stream_of, streams_of

COUNTED = {"num_prompt_tokens": 0, "num_completion_tokens": 0}
"""Counted from the first turn on."""
NAMES = ("experiment", "group", "worker", "status")
"""Of a trajectory: where its events go. A turn needs no more of its forty columns."""
MAX_CHECKS = 50
"""Of one evaluator that are kept."""


def reported_trajectory(trajectory_id: int) -> Trajectory:
    """The row with its NAMES only: the rest is read when it is needed. Raises Trajectory.DoesNotExist."""
    return Trajectory.objects.only(*NAMES).get(pk=trajectory_id)


@env_host.report_of_turns
def open_turn(
    trajectory_id: OwnOpenTrajectory,
    index: int,
    source: Source,
    observation: Observation,
    observed_at: datetime,
) -> None:
    """Record a turn as soon as its screenshot was stored."""
    with transaction.atomic(savepoint=False):  # within the caller's: all of it or nothing
        experiment_id = update_row(
            Trajectory,
            {"id": trajectory_id},
            num_turns=index + 1,
            last_frame=observation.sha256,
            add=COUNTED,
            returning="experiment",
        )
        insert_row(
            TurnRecord,
            trajectory=trajectory_id,
            index=index,
            source=source,
            frame=observation.sha256,
            width=observation.width,
            height=observation.height,
            observation_text=observation.text,
            observed_at=observed_at,
            **columns_of_texts(observation),
        )
        payload = {
            "trajectory": trajectory_id,
            "index": index,
            "frame": observation.sha256,
            "width": observation.width,
            "height": observation.height,
            "observed_at_ms": int(observed_at.timestamp() * 1000),
        }
        publish_to(streams_of(trajectory_id, experiment_id), "turn.added", payload)


def columns_of_texts(observation: Observation) -> dict[str, Any]:
    """Columns of tree, terminal and marks; none of a turn that read nothing."""
    read = observation.model_dump(mode="json", include={"accessibility", "terminal", "marks"})
    if not read:
        return {}
    named = {name: read[name]["sha256"] for name in read.keys() - {"marks"}}
    if observation.marks:
        named["plain"] = observation.marks.plain
    return {"read_texts": read} | {name: sha256 or None for name, sha256 in named.items()}


@env_host.report_of_turns
def close_turn(
    trajectory_id: OwnOpenTrajectory,
    turn: Turn,
    thought: str,
    completed_at: datetime,
    spent_ms: SpentMs | None = None,
) -> None:
    """Record what the policy said, what became of it, and where its time went."""
    with transaction.atomic(savepoint=False):
        update_row(
            TurnRecord,
            {"trajectory": trajectory_id, "index": turn.index},
            completion=turn.completion and turn.completion.model_dump(mode="json"),
            thought=thought,
            action=turn.action.model_dump(mode="json", exclude_defaults=True) if turn.action else None,
            earlier_actions=stored_actions(turn.earlier_actions),
            dialect=turn.dialect,
            parse_error=turn.parse_error or "",
            action_error=turn.action_error or "",
            screen_changed=turn.screen_changed,
            measured=turn.measured and turn.measured.model_dump(mode="json"),
            unsettled=turn.unsettled,
            completed_at=completed_at,
            acted_at=timezone.now(),
            spent_ms=spent_ms,
        )
        _count(trajectory_id, turn)
        publish(stream_of(trajectory_id), "turn.updated", {"trajectory": trajectory_id, "index": turn.index})


def stored_actions(actions: tuple[Action, ...]) -> list[dict[str, Any]] | None:
    """As `TurnRecord.earlier_actions` holds them."""
    return [action.model_dump(mode="json", exclude_defaults=True) for action in actions] or None


def _count(trajectory_id: int, turn: Turn) -> None:
    """Add a turn's tokens and parse errors to its trajectory's."""
    added = {"num_parse_errors": 1} if turn.parse_error else {}
    if completion := turn.completion:
        added["num_prompt_tokens"] = completion.num_prompt_tokens
        added["num_completion_tokens"] = len(completion.token_ids)
    if added:
        update_row(Trajectory, {"id": trajectory_id}, add=added)


@env_host.report_of_turns
def record_final_screen(trajectory_id: OwnOpenTrajectory, frame: str) -> None:
    """Keep the screen that the evaluator is about to judge, and choose what lists show."""
    turns = TurnRecord.objects.filter(trajectory=trajectory_id).order_by("index")
    thumbnail = most_telling([*turns.values_list("frame", flat=True), frame])
    row = Trajectory.objects.filter(pk=trajectory_id)
    row.update(final_frame=frame, last_frame=frame, thumbnail=thumbnail)


def record_turn_terms(*, trajectory: Trajectory, terms: dict[int, list[dict[str, Any]]]) -> None:
    """Per-turn reward terms, known when the trajectory is scored. turn index -> terms"""
    if not terms:
        return
    update_each(TurnRecord, {"trajectory": trajectory.pk}, "terms", by="index", values=terms)


@env_host.report_of_turns
def record_checks(trajectory_id: OwnOpenTrajectory, checks: list[MetricFinding]) -> None:
    """What the evaluator looked at, for people."""
    rows = [check.model_dump(mode="json") for check in checks[:MAX_CHECKS]]
    Trajectory.objects.filter(pk=trajectory_id).update(checks=rows)


@env_host.report_of_turns
def record_milestones(trajectory_id: OwnOpenTrajectory, reached: list[ReachedMilestone]) -> None:
    """All milestones of its task that were reached up to now."""
    trajectory = reported_trajectory(trajectory_id)
    rows = [one.model_dump(mode="json") for one in reached]
    with transaction.atomic():
        Trajectory.objects.filter(pk=trajectory_id).update(milestones=rows)
        announce(trajectory, TrajectoryStatus(trajectory.status))


def record_fingerprint(*, trajectory: Trajectory, fingerprint: str) -> None:
    """What made its token ids; "" = unknown, or nothing was sampled."""
    if fingerprint:
        Trajectory.objects.filter(pk=trajectory.pk).update(fingerprint=fingerprint)
