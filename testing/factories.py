"""Plain functions that make rows: every argument has a default, everything unnamed is unremarkable.

team = make_team()
owner = make_user("operator", team=team)
trajectory = make_trajectory(team=team, turns=3, reward=1.0)     # with its task, group and frames
"""

from datetime import timedelta
from functools import cache
from io import BytesIO
from itertools import count
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.utils import timezone
from PIL import Image

from training.actions.write_completion import format_action
from training.contracts.config import ExperimentConfig
from training.contracts.types import Action, Purpose, Source, Task, TrajectoryStatus
from webapp.accounts.models import Membership, Role, Team
from webapp.experiments.models import Attempt, Experiment, ExperimentStatus, TaskRecord, TaskSet
from webapp.replay.models import ReplayEntry, Verdict
from webapp.trajectories.models import Group, Trajectory, TurnRecord
from webapp.trajectories.services.frames import store_frame

PASSWORD = "correct horse battery"
SCREEN = (512, 384)
_numbers = count(1)


def make_team(name: str = "") -> Team:
    return Team.objects.create(name=name or f"team {next(_numbers)}")


def make_user(role: str | None = Role.VIEWER, *, team: Team | None = None, name: str = "") -> User:
    """A user with `role` in `team` (a new team when none is given); role=None belongs to no team."""
    user = User.objects.create(username=name or f"user{next(_numbers)}", password=_hashed_password())
    if role is not None:
        Membership.objects.create(team=team or make_team(), user=user, role=role)
    return user


@cache
def _hashed_password() -> str:
    """Hashed once: the product's hasher is slow on purpose."""
    return make_password(PASSWORD)


def make_task_set(name: str = "") -> TaskSet:
    return TaskSet.objects.create(name=name or f"set-{next(_numbers)}")


def make_task(*, task_set: TaskSet | None = None, family: str = "menu", split: str = "train") -> TaskRecord:
    number = next(_numbers)
    spec = Task(
        task_id=f"{family}-{number}",
        instruction=f"Choose row {number} of the menu",
        family=family,
        split=split,
        evaluator={"func": "exact_match"},
    )
    row = TaskRecord.made_from(spec, task_set=task_set or make_task_set())
    row.save()
    return row


def make_experiment(
    *,
    team: Team | None = None,
    owner: User | None = None,
    status: str = ExperimentStatus.RUNNING,
    name: str = "",
    **values: Any,
) -> Experiment:
    number = next(_numbers)
    values.setdefault("config", ExperimentConfig().model_dump(mode="json"))
    return Experiment.objects.create(
        team=team or make_team(),
        owner=owner,
        status=status,
        name=name or f"experiment {number}",
        queue_order=number,
        **values,
    )


def make_attempt(experiment: Experiment | None = None, *, number: int = 1, **values: Any) -> Attempt:
    """One that a gpu worker of this machine holds."""
    values = {"worker_name": "gpu@here", **values}
    return Attempt.objects.create(experiment=experiment or make_experiment(), number=number, **values)


def make_group(
    *,
    team: Team | None = None,
    experiment: Experiment | None = None,
    task: TaskRecord | None = None,
    size: int = 2,
    **values: Any,
) -> Group:
    """A group without members; its team is the experiment's."""
    if experiment:
        team = experiment.team
    values.setdefault("purpose", Purpose.TRAIN)
    return Group.objects.create(
        team=team or make_team(), experiment=experiment, task=task or make_task(), size=size, **values
    )


def make_trajectory(
    *,
    team: Team | None = None,
    experiment: Experiment | None = None,
    group: Group | None = None,
    turns: int = 1,
    reward: float | None = 1.0,
    status: str = TrajectoryStatus.TERMINATED,
    **values: Any,
) -> Trajectory:
    """A trajectory with `turns` recorded turns, whose frames are real files."""
    group = group or make_group(team=team, experiment=experiment)
    now = timezone.now()
    is_scored = TrajectoryStatus(status).is_scored()
    defaults = {
        "team_id": group.team_id,
        "experiment_id": group.experiment_id,
        "task_id": group.task_id,
        "family": group.task.family,
        "purpose": group.purpose,
        "source": Source.POLICY,
        "policy_version": 0,
        "num_turns": turns,
        "score": reward if is_scored else None,
        "reward": reward if is_scored else None,
        "started_at": now - timedelta(seconds=turns + 1),
        "ended_at": now if TrajectoryStatus(status).is_final() else None,
    }
    trajectory = Trajectory.objects.create(group=group, status=status, **{**defaults, **values})
    for index in range(turns):
        make_turn(trajectory, index, is_last=index == turns - 1 and is_scored)
    Trajectory.objects.filter(pk=trajectory.pk).update(last_frame=make_frame(group.team, turns - 1))
    trajectory.refresh_from_db()
    return trajectory


def make_turn(trajectory: Trajectory, index: int, *, is_last: bool = False, **values: Any) -> TurnRecord:
    """A click, or the closing `terminate`, written in the JSON dialect, as First desk's policy does."""
    click = {"kind": "click", "x": 20 + 30 * index, "y": 40 + 10 * index}
    action = {"kind": "terminate", "status": "success"} if is_last else click
    defaults = {
        "frame": make_frame(trajectory.team, index),
        "width": SCREEN[0],
        "height": SCREEN[1],
        "observation_text": trajectory.task.instruction if index == 0 else "",
        "completion": {
            "text": format_action(Action.model_validate(action), screen=SCREEN),
            "token_ids": [1, 2, 3],
            "behaviour_logprobs": [-0.1, -0.2, -0.3],
            "policy_version": 0,
            "finish_reason": "stop",
            "num_prompt_tokens": 10,
        },
        "thought": f"thought {index}",
        "action": action,
        "dialect": "json",
        "observed_at": timezone.now(),
        "completed_at": timezone.now(),
        "acted_at": timezone.now(),
    }
    return TurnRecord.objects.create(trajectory=trajectory, index=index, **{**defaults, **values})


@cache
def _plain_screen(shade: int) -> bytes:
    """PNG of one colour."""
    out = BytesIO()
    Image.new("RGB", SCREEN, (shade, 90, 255 - shade)).save(out, "PNG")
    return out.getvalue()


def make_frame(team: Team, index: int = 0) -> str:
    """Store a plain screen for `team` and return its sha256; equal indexes give equal frames."""
    return store_frame(team, _plain_screen(index * 37 % 256))


def make_replay_entry(
    *,
    team: Team | None = None,
    trajectory: Trajectory | None = None,
    verdict: str = Verdict.INBOX,
    turns: int = 3,
    **values: Any,
) -> ReplayEntry:
    trajectory = trajectory or make_trajectory(team=team, turns=turns, reward=1.0)
    return ReplayEntry.objects.create(
        team_id=trajectory.team_id,
        trajectory=trajectory,
        family=trajectory.family,
        verdict=verdict,
        **values,
    )
