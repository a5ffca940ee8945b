"""The one way in which views reach a replay entry, or an import."""

from django.http import HttpRequest

from webapp.accounts.access import owned_row
from webapp.accounts.models import Role
from webapp.replay.models import ReplayEntry, ReplayImport


def get_entry(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> ReplayEntry:
    """The entry with its trajectory and task loaded; 404 for strangers, 403 below `role`."""
    related = ("trajectory", "trajectory__task", "trajectory__experiment", "labelled_by")
    return owned_row(request, ReplayEntry, pk, role, *related)


def get_import(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> ReplayImport:
    """The import with its owner and task set loaded; 404 for strangers, 403 below `role`."""
    return owned_row(request, ReplayImport, pk, role, "owner", "task_set")
