"""Evaluations with results by task: what the matrix and the comparison are measured on."""

from __future__ import annotations

from random import Random

from training.contracts.types import Task
from webapp.experiments.models import Evaluation, EvaluationTasks, Experiment, TaskRecord, TaskSet

NUM_COMPARED = 6
"""Experiments that have them."""
NUM_POINTS = 20
"""Evaluations of each: the one before, and one every step."""
NUM_TASKS = 369
"""As many as OSWorld has."""
SAMPLES = {1.0: 3, 0.0: 1}
"""Temperature -> samples per task."""
FAMILIES = (
    "chrome",
    "gimp",
    "calc",
    "impress",
    "writer",
    "multi_apps",
    "os",
    "thunderbird",
    "vlc",
    "vs_code",
)


def fill_task_evaluations(experiments: list[Experiment]) -> None:
    """Sampled and greedy evaluations in the place of those that the experiments had."""
    Evaluation.objects.filter(experiment__in=experiments).delete()
    name = experiments[0].settings.tasks.task_set
    tasks = _fill_tasks(TaskSet.objects.create(name=name))
    random = Random(11)
    for experiment in experiments:
        for step in range(NUM_POINTS):
            for temperature, samples in SAMPLES.items():
                chance = 0.3 + 0.02 * step
                won = {task: sum(random.random() < chance for _ in range(samples)) for task in tasks}
                _add(experiment, step, temperature, {task: [one, samples, 0] for task, one in won.items()})


def _fill_tasks(task_set: TaskSet) -> list[str]:
    specs = [
        Task(
            task_id=f"{number:08x}-2a55-4cb4-aa39-5b1f9c7d8e{number % 256:02x}",
            instruction=f"Open the report of month {number}, sum its third column and save the file as a PDF",
            family=FAMILIES[number % len(FAMILIES)],
            split="heldout",
        )
        for number in range(NUM_TASKS)
    ]
    TaskRecord.objects.bulk_create(TaskRecord.made_from(spec, task_set=task_set) for spec in specs)
    return [spec.task_id for spec in specs]


def _add(experiment: Experiment, step: int, temperature: float, results: dict[str, list[int]]) -> None:
    num_samples = sum(samples for _, samples, _ in results.values())
    won = sum(one for one, _, _ in results.values())
    evaluation = Evaluation.objects.create(
        experiment=experiment,
        name={0: "before", NUM_POINTS - 1: "after"}.get(step, "during"),
        step=step,
        policy_version=step,
        split="heldout",
        temperature=temperature,
        samples_per_task=SAMPLES[temperature],
        num_tasks=len(results),
        num_samples=num_samples,
        num_success=won,
        success=won / num_samples,
        low=won / num_samples - 0.05,
        high=won / num_samples + 0.05,
    )
    EvaluationTasks.objects.create(evaluation=evaluation, results=results)


def matrix_pages(team_id: int) -> dict[str, str]:
    """Name -> path."""
    found = Experiment.objects.filter(team_id=team_id).order_by("id")[:NUM_COMPARED]
    ids = [experiment.pk for experiment in found]
    several = "&".join(f"id={pk}" for pk in ids)
    return {
        "matrix, 20 evaluations": f"/experiments/tasks/?id={ids[0]}",
        "matrix, regressed": f"/experiments/tasks/?id={ids[0]}&show=regressed",
        "matrix, 6 experiments": f"/experiments/tasks/?{several}",
        "compare, 6 experiments": f"/experiments/compare/?{several}",
    }
