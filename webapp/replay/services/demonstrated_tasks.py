"""Tasks that are known from imported trajectories only."""

from webapp.accounts.models import Team
from webapp.experiments.models import TaskRecord, TaskSet


def demonstrations_of(team: Team) -> str:
    """Name of the set of tasks that came with this team's imports alone; people's names hold no "_"."""
    return f"demonstrations_{team.pk}"


SAVED = ("instruction", "family", "split", "spec", "status", "reason", "reasons")


def ensure_demonstrated_task(team: Team, task: TaskRecord) -> TaskRecord:
    """The row of a task in the team's set of such tasks, which is made with its first one."""
    task_set, _ = TaskSet.objects.get_or_create(
        name=demonstrations_of(team),
        team=team,
        defaults={"title": "Demonstrations only", "origin": "imports"},
    )
    values = {name: getattr(task, name) for name in SAVED}
    row, _ = TaskRecord.objects.get_or_create(task_set=task_set, task_id=task.task_id, defaults=values)
    return row
