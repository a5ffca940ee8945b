"""Families that fell while a run got better, by a run as it was recorded on real desktops."""

import pytest

from testing.evaluation_rows import make_evaluation
from testing.factories import make_experiment, make_task_set
from testing.recorded_runs import smoldesk_runs
from training.contracts.types import Task
from training.planning.presets import load_preset
from webapp.analysis.verdict.sentence import described
from webapp.analysis.verdict.verdict import verdict_of
from webapp.experiments.models import Experiment, TaskRecord

pytestmark = pytest.mark.django_db


def run_of(name: str) -> Experiment:
    """A recorded run in the database, as its trainer reported it."""
    one = smoldesk_runs()[name]
    experiment = finished_run({task for look in one["looks"] for task in look["by_task"]})
    for look in sorted(one["looks"], key=lambda look: look["step"]):
        counts = {family: (found["solved"], found["draws"], 0) for family, found in look["families"].items()}
        named = {key: look[key] for key in ("name", "step", "temperature")}
        tasks = {task: (won, draws) for task, (won, draws) in look["by_task"].items()}
        make_evaluation(experiment, **named, tasks=tasks, per_family=counts)
    return experiment


def finished_run(tasks: set[str]) -> Experiment:
    """On a task set of its own with these tasks."""
    task_set = make_task_set()
    for task in sorted(tasks):
        spec = Task(task_id=task, instruction="-", family=task.split("/")[1], split="heldout", evaluator={})
        TaskRecord.made_from(spec, task_set=task_set).save()
    config = load_preset("smoldesk").config.model_dump(mode="json")
    config["tasks"]["task_set"] = task_set.name
    return make_experiment(status="finished", config=config, started_at="2026-11-28T03:20Z")


def test_a_family_that_was_lost_while_others_were_learned_is_named() -> None:
    """Rejection fine-tuning, first seed: it renames and does not stop, as what it imitated."""
    experiment = run_of("demonstrated/rejection/seed 0")
    (family,) = verdict_of(experiment).fallen_families
    assert (family.name, family.kind) == ("rename", "sampled")
    found = described(experiment)
    assert found is not None
    assert "Held-out tasks of rename were lost (sampled 50 % to 0 %)." in found["text"]


def test_what_was_reached_at_a_limit_is_told_beside_it() -> None:
    names = [f"own/{family}/{number}" for family in ("form", "rename") for number in range(20)]
    experiment = finished_run(set(names))
    for name, step, babbles in (("before", 0, False), ("after", 10, True)):
        tasks = {one: (1, 1, 0, int(babbles and "rename" in one)) for one in names}
        counts = {"form": (20, 20, 0), "rename": (20, 20, 20 * babbles)}
        make_evaluation(experiment, name=name, step=step, temperature=0.0, tasks=tasks, per_family=counts)
    found = described(experiment)
    assert found is not None
    assert (
        "Held-out tasks of rename were lost (greedy 100 % to 0 %; 20 more only at a limit)." in found["text"]
    )


@pytest.mark.parametrize(
    "name", [*(f"grpo/seed {seed}" for seed in range(3)), "rejection/seed 1", "rejection/seed 2"]
)
def test_what_chance_can_do_is_not_named(name: str) -> None:
    """Runs in which no family fell by a fifth beyond chance, at either temperature."""
    assert verdict_of(run_of(f"demonstrated/{name}")).fallen_families == []


def test_where_every_family_fell_the_outcome_says_it() -> None:
    names = [f"own/{family}/{number}" for family in ("form", "rename") for number in range(20)]
    experiment = finished_run(set(names))
    for name, step, won in (("before", 0, 1), ("after", 10, 0)):
        tasks, counts = dict.fromkeys(names, (won, 1)), dict.fromkeys(("form", "rename"), (20 * won, 20, 0))
        make_evaluation(experiment, name=name, step=step, temperature=0.0, tasks=tasks, per_family=counts)
    found = verdict_of(experiment)
    assert found.outcome == "collapsed"
    assert found.fallen_families == []
