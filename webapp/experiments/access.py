"""The one way in which views reach experiments."""

from django.db.models.expressions import Combinable
from django.http import HttpRequest

from webapp.accounts.access import member, owned_row
from webapp.accounts.models import Role
from webapp.experiments.models import Experiment
from webapp.lib.request_values import row_id, whole_number

MAX_AT_ONCE = 200
MAX_SIDE_BY_SIDE = 6


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


def chosen_experiments(request: HttpRequest) -> list[Experiment]:
    """Those of the team that the address names, in its order, at most MAX_SIDE_BY_SIDE."""
    asked = list(dict.fromkeys(pk for text in request.GET.getlist("id") if (pk := row_id(text)) is not None))
    rows = Experiment.objects.filter(team=member(request).team, pk__in=asked[:MAX_SIDE_BY_SIDE])
    by_id = rows.in_bulk()
    return [by_id[pk] for pk in asked[:MAX_SIDE_BY_SIDE] if pk in by_id]
