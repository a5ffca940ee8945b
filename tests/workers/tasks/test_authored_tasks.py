"""A task that a person wrote is handed to the trainer, and an env worker really runs and scores it."""

import json

import pytest
from django.test import Client

from testing.factories import make_attempt, make_user
from training.content.task_sets.first_desk import generate
from training.contracts import coordinator as routes
from training.contracts.config import RewardPreset, parse_config
from training.contracts.config.reward_presets import WeightedTerm
from training.contracts.types import Purpose, Source
from training.tasks.task_json import to_osworld
from webapp.accounts.models import Role
from webapp.experiments.models import TaskRecord
from webapp.experiments.queries.reward_presets import with_saved_terms
from webapp.experiments.services.experiments import queue_experiment
from webapp.experiments.services.reward_presets import save_preset
from webapp.trajectories.models import Trajectory
from webapp.worker_door.trainer_requests.contract import TrainerCall
from webapp.worker_door.trainer_requests.rollouts import get_finished_groups, get_tasks, sample_group

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.desktop]

NOTE = to_osworld(next(task for task in generate() if task.family == "note")) | {"id": "mine/note"}
PER_ACTION = WeightedTerm(term="acted", weight=0.25, expression="executed", count="sum")
SCORE = WeightedTerm(term="task_score.v1", weight=1.0)


def save(client: Client, base: TaskRecord | None, **changes) -> TaskRecord:
    fields = {"text": json.dumps(NOTE | changes), "set": "mine", "task": base.pk if base else ""}
    assert client.post("/task-editor/", fields).status_code == 302
    return TaskRecord.objects.current().get(task_id=NOTE["id"])


def test_a_written_task_runs_at_its_version_under_an_expression_of_the_team(transactional_db, env_thread):
    operator, client = make_user(Role.OPERATOR), Client()
    client.force_login(operator)
    team = operator.memberships.get().team
    first = save(client, None)
    definition = RewardPreset(terms=(SCORE, PER_ACTION))
    save_preset(team=team, user=operator, name="busy", definition=definition, alpha=0.3, note="")
    values = {"tasks": {"task_set": "mine"}, "rewards": {"preset": "busy.v1"}}
    config = parse_config(with_saved_terms(values, team))
    experiment = queue_experiment(team=team, owner=operator, name="mine", config=config)
    save(client, first, instruction="Something else.")

    call = TrainerCall(make_attempt(experiment))
    (task,) = get_tasks(call, routes.TaskQuery(split="train"))
    assert task.instruction == NOTE["instruction"]  # the version that the experiment was queued with
    wanted = {"task_id": task.task_id, "size": 1, "purpose": Purpose.TRAIN, "source": Source.ORACLE}
    asked = routes.SampleGroup(**wanted, step=1, temperature=1.0, policy_version=None)
    group_id = sample_group(call, asked).group_id
    (group,) = get_finished_groups(call, routes.FinishedQuery(after=0, wait=30)).groups
    assert group.group_id == group_id
    (trajectory,) = group.trajectories
    num_turns = len(NOTE["oracle"]["actions"])
    assert trajectory.score == 1.0
    terms = {term.name: term.value for term in trajectory.terms}
    assert terms == {"task_score.v1": 1.0, "acted": num_turns}
    assert trajectory.reward == 1.0 + 0.25 * num_turns
    row = Trajectory.objects.get()
    assert row.task == first
    (check,) = row.checks
    assert (check["metric"], check["value"], check["expected"]) == ("compare_text_file", 1.0, "blue hen\n")
    assert check["got"].strip() == "blue hen"
    assert "/home/user/note.txt" in check["source"]
