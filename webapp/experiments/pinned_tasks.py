"""The revision of its task set that an experiment keeps to, whatever is edited while it runs."""

from collections.abc import Iterator

from training.contracts.config import ExperimentConfig, TaskConfig
from training.contracts.config.section import Problem
from webapp.accounts.models import Team
from webapp.experiments.models import TaskSet


def with_pinned_tasks(config: ExperimentConfig, team: Team) -> ExperimentConfig:
    """`config` with the newest revision of its task set where it names none."""
    task_set = TaskSet.objects.of(team).filter(name=config.tasks.task_set).first()
    if config.tasks.revision or task_set is None:
        return config
    tasks = config.tasks.model_copy(update={"revision": task_set.revision})
    return config.model_copy(update={"tasks": tasks})


def task_set_problems(tasks: TaskConfig, team: Team) -> Iterator[Problem]:
    """A set of another team, and a revision that there has not been."""
    task_set = TaskSet.objects.filter(name=tasks.task_set).first()
    if task_set is None:
        return
    if task_set.team_id not in (None, team.pk):
        yield "tasks.task_set", f"{tasks.task_set} is not among the task sets of {team}"
    elif tasks.revision > task_set.revision:
        yield (
            "tasks.revision",
            f"the newest revision of {task_set.name} is {task_set.revision}; 0 stands for it",
        )
