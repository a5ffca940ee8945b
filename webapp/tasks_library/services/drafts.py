"""Tasks that people make by doing them: what is requested of the desktop, what was seen there, and tries."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from training.contracts.types import Task
from webapp.accounts.models import Team
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.experiments.models.tasks import WORKBENCH
from webapp.experiments.services.task_sets import write_tasks
from webapp.lib.remote_calls import OwnTrajectory, env_host
from webapp.lib.request_values import BadValue
from webapp.live.event_publishing import publish
from webapp.tasks_library.models import Draft, Moment
from webapp.tasks_library.services.verifications import queue_verification
from webapp.trajectories.models import Trajectory
from webapp.trajectories.services.announcements import stream_of

MAX_STEPS = 40
BLANK_EVALUATOR = {"func": "infeasible"}
"""Nothing is scored while a task is made."""


def workbench_name(team: Team) -> str:
    """Of the set in which the team's blank desktops and tries are kept; no list shows it."""
    return f"{WORKBENCH}{team.pk}"


def _workbench(team: Team) -> TaskSet:
    values = {"title": "Tasks being made", "origin": "tried before they were saved"}
    return TaskSet.objects.get_or_create(name=workbench_name(team), team=team, defaults=values)[0]


@transaction.atomic
def blank_task(*, team: Team, user: User, screen: tuple[int, int]) -> TaskRecord:
    """A clean desktop of this size, with nothing to do on it."""
    task_id = f"blank-{screen[0]}x{screen[1]}"
    task_set = _workbench(team)
    found = task_set.tasks.current().filter(task_id=task_id).first()
    if found is not None:
        return found
    task = Task(task_id=task_id, instruction="A new task", screen=screen, evaluator=BLANK_EVALUATOR)
    (row,) = write_tasks(task_set=task_set, tasks=[task], author=user).rows
    return row


def create_draft(*, trajectory: Trajectory) -> Draft:
    return Draft.objects.create(trajectory=trajectory)


@transaction.atomic
def add_step(*, draft: Draft, step: dict[str, Any]) -> None:
    """Request a set-up step of the desktop. Raises BadValue."""
    locked = Draft.objects.select_for_update().get(pk=draft.pk)
    if locked.is_starting:
        raise BadValue("step", "the task has begun; what you do now is its solution")
    if len(locked.steps) >= MAX_STEPS:
        raise BadValue("step", f"a set-up made here has at most {MAX_STEPS} steps")
    locked.steps = [*locked.steps, {"step": step, "is_done": False, "error": ""}]
    locked.save(update_fields=["steps"])
    _announce(locked.trajectory_id)


@transaction.atomic
def start_here(*, draft: Draft) -> None:
    """What the person does from now on is the task."""
    Draft.objects.filter(pk=draft.pk).update(is_starting=True)
    _announce(draft.trajectory_id)


@env_host.report
@transaction.atomic
def note_draft_step(trajectory_id: OwnTrajectory, index: int, error: str) -> None:
    """A step was done at the desktop; `error`: why it failed."""
    draft = Draft.objects.select_for_update().get(trajectory_id=trajectory_id)
    if index < len(draft.steps):
        draft.steps[index] = {**draft.steps[index], "is_done": True, "error": error[:300]}
        draft.save(update_fields=["steps"])
    _announce(trajectory_id)


@env_host.report
@transaction.atomic
def note_draft_state(
    trajectory_id: OwnTrajectory, moment: Moment, state: dict[str, Any], num_turns: int
) -> None:
    """How the desktop stood after `num_turns`; the first state of a moment stays."""
    draft = Draft.objects.select_for_update().get(trajectory_id=trajectory_id)
    if getattr(draft, moment) is None:
        setattr(draft, moment, state)
        draft.start_turn = num_turns if moment == "start" else draft.start_turn
        draft.save(update_fields=[moment, "start_turn"])
    _announce(trajectory_id)


@transaction.atomic
def try_task(*, task: Task, team: Team, user: User) -> TaskRecord:
    """Queue one run of the oracle and one of doing nothing, without saving the task in a set of people's."""
    task_set = _workbench(team)
    written = write_tasks(task_set=task_set, tasks=[task], author=user, note="tried before it was saved")
    row = next(iter(written.rows), None) or task_set.tasks.current().get(task_id=task.task_id)
    queue_verification(task=row, team_id=team.pk, rounds=1, user=user)
    return row


def _announce(trajectory_id: int) -> None:
    publish(stream_of(trajectory_id), "trajectory.draft", {"trajectory": trajectory_id})
