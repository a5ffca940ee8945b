"""Numbers of other engines stand side by side only with the difference named, on every page."""

import io
import json

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from testing.evaluation_rows import make_evaluation
from testing.factories import (
    make_experiment,
    make_group,
    make_task,
    make_task_set,
    make_team,
    make_trajectory,
    make_user,
)
from testing.page_text import page_text
from training.contracts.config import ExperimentConfig
from training.contracts.eye_test import EngineFacts, EyeTest, Gap
from training.contracts.types import Purpose
from webapp.accounts.models import Role, Team
from webapp.analysis.evaluations.stamps import measured_otherwise
from webapp.experiments.models import Evaluation, Experiment, TaskRecord
from webapp.experiments.sweep_plan import SAMPLED, SweepPlan
from webapp.reports.frozen_content import Choices, frozen
from webapp.sweeps.queries.summary import summary_of
from webapp.sweeps.search_space import parse_axes
from webapp.sweeps.services.sweeps import launch_sweep

pytestmark = pytest.mark.django_db

WORDS = "engine version 0.5.16 and 0.5.17, the second failed its eye test"


def stamp(version: str, nats: float) -> EyeTest:
    facts = EngineFacts(
        engine="sglang",
        version=version,
        kernels="fa3",
        precision="bfloat16",
        fingerprint="tokenizer:a",
        max_completion_tokens=40,
        max_context_tokens=900,
    )
    return EyeTest(facts=facts, gaps=(Gap(name="800x600", nats=nats),), limit=0.05, policy_version=1)


SOUND, BLIND = stamp("0.5.16", 0.01), stamp("0.5.17", 2.0)


@pytest.fixture
def team(client: Client) -> Team:
    found = make_team()
    client.force_login(make_user(Role.VIEWER, team=found))
    return found


@pytest.fixture
def task(team: Team) -> TaskRecord:
    return make_task(task_set=make_task_set("first-desk"), family="menu", split="heldout")


def measured(experiment: Experiment, name: str, eyes: EyeTest | None, task: TaskRecord) -> Evaluation:
    """One episode, which is kept."""
    group = make_group(experiment=experiment, task=task, size=1, purpose=Purpose.EVALUATION, temperature=1.0)
    make_trajectory(group=group, reward=1.0)
    return make_evaluation(
        experiment, name=name, tasks={task.task_id: (1, 1, group.pk)}, temperature=1.0, eyes=eyes
    )


def run(team: Team, **values: object) -> Experiment:
    return make_experiment(team=team, status="finished", started_at=timezone.now(), **values)


def test_before_and_after_of_a_run(client: Client, team: Team, task: TaskRecord) -> None:
    own = run(team)
    before, after = measured(own, "before", SOUND, task), measured(own, "after", BLIND, task)
    sides = reverse("task-side-by-side", args=[before.pk, after.pk, task.pk])
    names = f"#{own.pk} before (sampled) and #{own.pk} after (sampled)"
    for path, words in {
        f"/experiments/{own.pk}/": f"Both were measured otherwise: {WORDS}.",
        f"{reverse('evaluation-matrix')}?id={own.pk}": f"Both were measured otherwise: {WORDS}.",
        f"{reverse('success-by-domain')}?id={own.pk}": f"{names} were measured otherwise: {WORDS}.",
        sides: f"{names} were measured otherwise: {WORDS}.",
        "/experiments/": f'title="{WORDS}">measured otherwise</span>',
    }.items():
        assert words in page_text(client.get(path)), path
    table = frozen(team, Choices(experiments=[own.pk]))["tables"][-1]
    assert table["title"] == "Measured otherwise"
    assert table["rows"] == [[f"{names} were measured otherwise: {WORDS}."]]
    output = io.StringIO()
    call_command("experiment", str(own.pk), stdout=output)
    assert json.loads(output.getvalue())["success_change"]["differences"] == WORDS.split(", ")


def test_a_run_and_the_one_that_it_was_cloned_from(client: Client, team: Team, task: TaskRecord) -> None:
    parent = run(team)
    own = run(team, cloned_from=parent)
    for experiment, eyes in ((parent, SOUND), (own, BLIND)):
        measured(experiment, "after", eyes, task)
    assert f"measured otherwise: {WORDS}" in page_text(
        client.get(reverse("experiment-part", args=[own.pk, "lineage"]))
    )


def test_numbers_that_were_measured_alike_stand_without_a_word(
    client: Client, team: Team, task: TaskRecord
) -> None:
    own = run(team)
    before, after = (measured(own, name, SOUND, task) for name in ("before", "after"))
    sides = reverse("task-side-by-side", args=[before.pk, after.pk, task.pk])
    pages = [f"{reverse(name)}?id={own.pk}" for name in ("evaluation-matrix", "success-by-domain")]
    titles = [table["title"] for table in frozen(team, Choices(experiments=[own.pk]))["tables"]]
    assert titles == ["Experiments"]
    for path in (*pages, sides, f"/experiments/{own.pk}/", "/experiments/"):
        assert "measured otherwise" not in page_text(client.get(path)), path


def test_the_arms_of_a_sweep(client: Client, team: Team, task: TaskRecord) -> None:
    config = ExperimentConfig()
    axes = parse_axes("optimiser.learning_rate = 1e-6, 3e-6, 1e-5", config)
    plan = SweepPlan(axes=axes, metric=SAMPLED, num_seeds=3, arms_at_once=3)
    sweep = launch_sweep(team=team, owner=None, name="rates", config=config, plan=plan)
    seeds = list(Experiment.objects.filter(arm__sweep=sweep).order_by("id"))
    for number, experiment in enumerate(seeds):
        measured(experiment, "after", SOUND if number == 0 else BLIND, task)
    names = ", ".join(f"#{one.pk}" for one in seeds[1:7])
    words = f"#{seeds[0].pk} and {names} and 2 more were measured otherwise: {WORDS}."
    assert words in page_text(client.get(reverse("sweep-detail", args=[sweep.pk])))
    assert summary_of(sweep)["measured_otherwise"] == [words]


def test_an_evaluation_without_an_eye_test_is_unlike_one_with_it(team: Team, task: TaskRecord) -> None:
    own = run(team)
    found = [measured(own, name, eyes, task) for name, eyes in (("before", None), ("after", SOUND))]
    (words,) = measured_otherwise(found)
    assert words.endswith("were measured otherwise: one has no eye test.")
    assert measured_otherwise(found[:1]) == measured_otherwise([]) == []
