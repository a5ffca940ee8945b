"""Who may see which exploit and which version of a task."""

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from webapp.accounts.access import owned_row
from webapp.accounts.models import Role, Team
from webapp.attacks.models import Exploit
from webapp.experiments.models import TaskRecord


def get_version(team: Team, name: str, pk: int) -> TaskRecord:
    """A version of a task of set `name` that the team may see; 404 for any other."""
    rows = TaskRecord.objects.of(team).select_related("task_set")
    return get_object_or_404(rows, task_set__name=name, pk=pk)


def get_exploit(request: HttpRequest, pk: int, role: Role) -> Exploit:
    """404 for strangers, 403 below `role`."""
    return owned_row(request, Exploit, pk, role, "task__task_set")
