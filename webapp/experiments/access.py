"""The one way in which views reach experiments."""

from django.db.models.expressions import Combinable
from django.http import HttpRequest

from webapp.accounts.access import member, owned_row
from webapp.accounts.models import Role
from webapp.experiments.models import Experiment
from webapp.lib.request_values import whole_number

MAX_AT_ONCE = 200


def get_experiment(request: HttpRequest, pk: int, role: Role = Role.VIEWER, **also: Combinable) -> Experiment:
    """The experiment with its team and owner loaded, and `also` as `owned_row` reads it; 404 for strangers,
    403 below `role`."""
    return owned_row(request, Experiment, pk, role, "owner", **also)


def ticked_experiments(request: HttpRequest) -> list[Experiment]:
    """Those of the current team that a form or link names as `id`, oldest first."""
    values = request.POST if request.method == "POST" else request.GET
    chosen = [whole_number(value, "id") for value in values.getlist("id")[:MAX_AT_ONCE]]
    rows = Experiment.objects.filter(team=member(request).team, pk__in=chosen)
    return list(rows.select_related("owner").defer("config").order_by("pk"))
