"""What oracle and do-nothing runs say of a task, and asking for more of them."""

from django.contrib.auth.models import User
from django.db import transaction

from training.contracts.types import FINAL_STATUSES, Purpose
from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.experiments.models import TaskRecord
from webapp.trajectories.models import Trajectory
from webapp.trajectories.task_verification import queue_checks

MAX_ROUNDS = 20
MAX_OPEN = 2 * MAX_ROUNDS
"""Verification runs of a task that may wait or run at a time."""


@transaction.atomic
def queue_verification(*, task: TaskRecord, team_id: int, rounds: int, user: User) -> int:
    """Queue oracle and do-nothing runs; how many. None while enough of them wait or run."""
    running = Trajectory.objects.filter(team_id=team_id, task=task, purpose=Purpose.VERIFICATION)
    if running.exclude(status__in=FINAL_STATUSES).count() >= MAX_OPEN:
        return 0
    num = sum(group.size for group in queue_checks(task, team_id, None, rounds))
    log_action(AuditAction.LAUNCHED, person=user, team=team_id, kind="task", object_id=task.pk, runs=num)
    return num
