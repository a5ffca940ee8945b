"""Claims of trajectories for a worker, with all that running one needs."""

from dataclasses import dataclass
from typing import Any

from training.contracts.config import ExperimentConfig
from training.contracts.milestone import ReachedMilestone
from training.contracts.types import Action, Purpose, Source, Task, TrajectoryStatus, Turn
from webapp.attacks.services.scripted_runs import script_of
from webapp.experiments.models import Attempt, AttemptStatus
from webapp.fleet.models import Worker
from webapp.lib import disk_room
from webapp.lib.remote_calls import OwnWorker, TeamTrajectory, env_host
from webapp.tasks_library.models import Draft
from webapp.trajectories.models import Group, Trajectory, TurnRecord
from webapp.trajectories.queries import branches as branch_queries
from webapp.trajectories.row_to_types import turn_of
from webapp.trajectories.services import parking
from webapp.trajectories.services import trajectories as trajectory_services
from webapp.trajectories.services.trajectories import hand_back_job
from webapp.worker_door.job_tickets import require_ticket
from webapp.worker_door.policy_tokens import policy_token


@dataclass(frozen=True, slots=True)
class Branch:
    snapshot: str
    """Name on this machine's desk host; "" when there is none any more."""
    turns: tuple[Turn, ...]
    """What happened before, in its parents."""
    text: str
    """The text of the agent's first observation."""
    milestones: tuple[ReachedMilestone, ...] = ()
    """That were reached in these turns."""
    is_redone: bool = False
    """Without a snapshot: these turns' actions are done again."""
    screen: str = ""
    """Of one that is redone: sha256 of the parent's screen where it begins."""


@dataclass(frozen=True, slots=True)
class ClaimedTrajectory:
    """The columns of a claimed row that its worker needs."""

    pk: int
    team_id: int = 0
    member: int = 0
    is_parked: bool = False
    experiment_id: int | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """All that the env worker needs to know of a claimed trajectory."""

    row: ClaimedTrajectory
    task: Task
    config: ExperimentConfig
    source: Source
    temperature: float
    policy_url: str
    policy_token: str
    policy_certificate: str = ""
    """PEM; "" = the server speaks plain HTTP on this machine."""
    script: tuple[Action, ...] | None = None
    """What a scripted run does; None: nothing but saying that it is done."""
    branch: Branch | None = None
    """Set when it is continued from another trajectory's state."""
    is_draft: bool = False
    """A person makes a task at the desktop."""


@env_host.patient_request
def claim(trajectory_id: TeamTrajectory, worker_name: OwnWorker, ticket: str = "") -> Assignment | None:
    """Take the trajectory for the worker; None when another has it, it was cancelled, or none may begin.

    `ticket`: what a joined host got it with.
    """
    require_ticket(ticket, trajectory_id)
    worker = Worker.objects.get(name=worker_name)
    if worker.is_draining or disk_room.shortages(*disk_room.OF_EPISODES):
        hand_back_job(trajectory_id=trajectory_id)
        return None
    row = trajectory_services.claim_trajectory(
        trajectory_id=trajectory_id, worker=worker
    ) or parking.claim_parked(trajectory_id=trajectory_id, worker=worker)
    if row is None:
        return None
    config = ExperimentConfig.model_validate(
        row.experiment.config if row.experiment else lone_config(row.group)
    )
    attempt = _running_attempt(row) if row.source == Source.POLICY else None
    script, task = script_of(row), Task.model_validate(row.task.spec)
    return Assignment(
        row=ClaimedTrajectory(
            pk=row.pk,
            team_id=row.team_id,
            member=row.member,
            is_parked=row.status == TrajectoryStatus.PARKED,
            experiment_id=row.experiment_id,
        ),
        task=script.task_for(task) if script else task,
        config=config,
        source=Source(row.source),
        temperature=row.group.temperature,
        policy_url=attempt.policy_url if attempt else "",
        policy_token=policy_token(attempt, worker) if attempt else "",
        policy_certificate=attempt.policy_certificate if attempt else "",
        script=script.actions if script else None,
        branch=_branch_of(row) if row.group.branch_turn is not None else None,
        is_draft=row.purpose == Purpose.DEMONSTRATION and Draft.objects.filter(trajectory=row).exists(),
    )


def lone_config(group: Group) -> dict[str, Any]:
    """The config of a group without an experiment; its texts are there for policies that read any of them."""
    parts = ["screenshot", "accessibility", "terminal"] if group.reads_texts else ["screenshot"]
    return {"desktops": group.desktops, "prompt": {"observation": parts}}


def _branch_of(row: Trajectory) -> Branch:
    snapshot, group = row.group.snapshot, row.group
    first = group.branch_turn
    assert first is not None  # a branch has one
    is_redone = snapshot is None and not row.host  # a machine is named where a snapshot lay
    begins = TurnRecord.objects.filter(trajectory=group.parent_id, index=first)
    return Branch(
        is_redone=is_redone,
        screen=begins.values_list("frame", flat=True).first() or "" if is_redone else "",
        snapshot=snapshot.name if snapshot else "",
        turns=tuple(turn_of(turn) for turn in row.turns.filter(index__lt=first)),
        text=branch_queries.first_text(row),
        milestones=tuple(ReachedMilestone.model_validate(one) for one in row.milestones),
    )


def _running_attempt(row: Trajectory) -> Attempt | None:
    running = Attempt.objects.filter(experiment=row.experiment, status=AttemptStatus.RUNNING)
    if row.purpose == Purpose.BRANCH:  # a person's wish, not the trainer's: any policy of the experiment
        return running.order_by("-number").first()
    return running.filter(number=row.group.attempt).first()
