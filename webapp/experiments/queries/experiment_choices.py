"""The experiments that a filter of a list offers."""

from django.db.models import Q, QuerySet

from webapp.experiments.models import Experiment
from webapp.lib.request_values import row_id


def newest_and(chosen: str, *, team_id: int, limit: int) -> QuerySet[Experiment]:
    """The team's newest, and the chosen one (a primary key as text) whatever its age; newest first."""
    own = Experiment.objects.filter(team_id=team_id)
    newest = Q(pk__in=own.order_by("-id").values("pk")[:limit].values("pk"))
    return own.filter(newest | Q(pk=row_id(chosen))).order_by("-id")
