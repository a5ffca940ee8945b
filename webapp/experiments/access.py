"""The one way in which views reach an experiment."""

from django.http import HttpRequest

from webapp.accounts.access import owned_row
from webapp.accounts.models import Role
from webapp.experiments.models import Experiment


def get_experiment(request: HttpRequest, pk: int, role: Role = Role.VIEWER) -> Experiment:
    """The experiment with its team and owner loaded; 404 for strangers, 403 below `role`."""
    return owned_row(request, Experiment, pk, role, "owner")
