"""What becomes of a claimed trajectory: its status, turns, score and reward."""

from dataclasses import dataclass
from typing import Annotated

from django.db import connection, transaction
from pydantic import Field

from training.contracts.config import RewardConfig
from training.contracts.types import (
    Limit,
    Purpose,
    RewardTerm,
    Source,
    TrajectoryStatus,
)
from training.rewards import rescore
from webapp.attacks.services.scripted_runs import note_scripted_run
from webapp.fleet.models import DesktopPhase
from webapp.fleet.services import desktops
from webapp.lib.remote_calls import OwnHost, OwnOpenTrajectory, OwnTrajectory, any_host, caller, env_host
from webapp.lib.statements.single_rows import marks
from webapp.replay.services import inbox
from webapp.screens.models import ACTIVE_CONTROLS
from webapp.trajectories import frame_files
from webapp.trajectories.models import Frame, Trajectory
from webapp.trajectories.row_to_types import trajectory_of, turn_limit
from webapp.trajectories.services import trajectories as trajectory_services
from webapp.trajectories.services import turns
from webapp.trajectories.services.frames import frames_folder as frames_folder
from webapp.trajectories.services.turns import close_turn as close_turn
from webapp.trajectories.services.turns import open_turn as open_turn
from webapp.trajectories.services.turns import record_checks as record_checks
from webapp.trajectories.services.turns import record_final_screen as record_final_screen
from webapp.trajectories.services.turns import record_milestones as record_milestones
from webapp.trajectories.services.turns import reported_trajectory
from webapp.worker_door.ownership import own_of, require_team, works_for

LOOK = """
SELECT id, status, keeps_snapshots, EXISTS (
    SELECT 1 FROM screens_control
    WHERE trajectory_id = trajectories_trajectory.id AND status IN ({statuses})
) FROM trajectories_trajectory WHERE id IN ({ids})
"""
"""Asked before every turn: Django takes longer to write it than a database to answer."""


@dataclass(frozen=True, slots=True)
class TrajectoryNow:
    """What was decided elsewhere about a trajectory that runs."""

    has_ended: bool = False
    has_control: bool = False
    """A person wants its desktop, or has it."""
    wants_snapshots: bool = False


@env_host.request
def beat_trajectories(trajectory_ids: list[int]) -> None:
    """The heartbeat of those that a worker runs, or whose last reports are on their way."""
    trajectory_services.beat_trajectories(own_of(trajectory_ids))


@env_host.patient_request
def look_at(trajectory_ids: list[int]) -> dict[int, TrajectoryNow]:
    """What was decided about them meanwhile."""
    own = own_of(trajectory_ids)
    if not own:
        return {}
    statement = LOOK.format(statuses=marks(ACTIVE_CONTROLS), ids=marks(own))
    with connection.cursor() as cursor:
        cursor.execute(statement, [*(status.value for status in ACTIVE_CONTROLS), *own])
        return {
            pk: TrajectoryNow(TrajectoryStatus(status).is_final(), bool(has_control), bool(keeps_snapshots))
            for pk, status, keeps_snapshots, has_control in cursor.fetchall()
        }


@env_host.report
def begin_running(
    trajectory_id: OwnOpenTrajectory, desktop_id: str, host: OwnHost, provider: str, screen: tuple[int, int]
) -> None:
    """The desktop is set up."""
    row = reported_trajectory(trajectory_id)
    desktop = desktops.record_desktop(
        name=desktop_id,
        phase=DesktopPhase.LEASED,
        host=host,
        provider=provider,
        width=screen[0],
        height=screen[1],
        worker=row.worker,
    )
    trajectory_services.move_trajectory(trajectory=row, to=TrajectoryStatus.RUNNING, desktop=desktop)


@env_host.report
def begin_evaluating(trajectory_id: OwnOpenTrajectory) -> None:
    row = reported_trajectory(trajectory_id)
    trajectory_services.move_trajectory(trajectory=row, to=TrajectoryStatus.EVALUATING)


@env_host.report
@transaction.atomic
def finish(
    trajectory_id: OwnOpenTrajectory,
    status: TrajectoryStatus,
    score: Annotated[float, Field(ge=0.0, le=1.0)],
    reward: float,
    terms: list[RewardTerm],
    turn_terms: dict[int, list[RewardTerm]],
    fingerprint: str,
    limit: Limit | None,
) -> None:
    """Record score, reward and what made the tokens; offer a success to the replay inbox, keep an exploit.

    All at once: a reader of the finished group finds them, and no worker dies in between.
    """
    row = reported_trajectory(trajectory_id)
    if caller.get():
        reward, terms, turn_terms = _as_its_config_says(trajectory_id, score)
    by_turn = {index: _plain(found) for index, found in turn_terms.items()}
    turns.record_turn_terms(trajectory=row, terms=by_turn)
    turns.record_fingerprint(trajectory=row, fingerprint=fingerprint)
    trajectory_services.end_trajectory(
        trajectory_id=row.pk, status=status, score=score, reward=reward, terms=_plain(terms), limit=limit
    )
    row = Trajectory.objects.get(pk=trajectory_id)
    if row.status == status:
        note_scripted_run(row)
    if row.status == status and _is_offered(row):
        inbox.offer_to_inbox(trajectory=row)


def _is_offered(row: Trajectory) -> bool:
    """Of an oracle only where replay is on: SFT alone records hundreds that no person would label."""
    if row.purpose == Purpose.DEMONSTRATION and row.source == Source.ORACLE:
        return row.experiment is not None and row.experiment.settings.replay.enabled
    return row.purpose in (Purpose.TRAIN, Purpose.BRANCH) or row.source == Source.HUMAN


def _as_its_config_says(
    trajectory_id: int, score: float
) -> tuple[float, list[RewardTerm], dict[int, list[RewardTerm]]]:
    """Reward, terms and terms by turn of what was recorded: those that another machine sends are its word."""
    row = Trajectory.objects.select_related("task", "group", "experiment").get(pk=trajectory_id)
    recorded = trajectory_of(row).model_copy(update={"score": score})
    rewards = row.experiment.settings.rewards if row.experiment else RewardConfig()
    found = rescore(recorded, rewards, max_turns=turn_limit(row))
    by_turn = {turn.index: list(turn.terms) for turn in found.turns if turn.terms}
    return found.reward or 0.0, list(found.terms), by_turn


@env_host.report
def end_errored(trajectory_id: OwnTrajectory, kind: str, error: str) -> None:
    """Infrastructure failed: never a reward; its place in the group is run again."""
    trajectory_services.end_trajectory(
        trajectory_id=trajectory_id,
        status=TrajectoryStatus.ERRORED,
        error=error[:4000],
        error_kind=kind,
    )


@env_host.report
def end_cancelled(trajectory_id: OwnTrajectory) -> None:
    trajectory_services.end_trajectory(trajectory_id=trajectory_id, status=TrajectoryStatus.CANCELLED)


@any_host.patient_request
def read_screenshot(sha256: str) -> bytes:
    """The lossless PNG of an observation."""
    if caller.get():
        teams = Frame.objects.filter(sha256=sha256).values_list("team_id", flat=True)
        require_team(*teams)
    return frame_files.read_frame(sha256)


def missing_frames(named: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Of (team, sha256) those that have to be sent before a report may name them; none of a team that the
    caller does not work for: all that named them was deleted."""
    if not named:
        return []
    teams, sha256s = zip(*named, strict=True)
    known = Frame.objects.filter(team_id__in=set(teams), sha256__in=sha256s)
    missing = set(named) - set(known.values_list("team_id", "sha256"))
    return sorted((team, sha256) for team, sha256 in missing if works_for(team))


def _plain(terms: list[RewardTerm]) -> list[dict[str, object]]:
    return [term.model_dump(mode="json") for term in terms]
