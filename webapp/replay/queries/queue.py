"""The queue of the inbox: one row for all near-identical entries that wait."""

from typing import Any

from django.db.models import Count, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from webapp.replay.filters import NEWEST, EntryFilter
from webapp.replay.models import ReplayEntry
from webapp.replay.queries.entries import entry_rows
from webapp.replay.queries.sorting import Surroundings, ordered_ids

QUEUE_SIZE = 50


def queue_after(team_id: int, chosen: EntryFilter, before_id: int | None, limit: int) -> list[ReplayEntry]:
    """The next entries of a queue, behind `before_id` in its order.

    Of near-identical ones that wait, the first stands for all; `num_alike` says how many the others are.
    """
    if chosen.sort != NEWEST:
        around = Surroundings(team_id)
        ids = ordered_ids(team_id, chosen, around, after=before_id)[:limit]
        rows = _with_alike(entry_rows(team_id), team_id, chosen)
        found = {entry.pk: entry for entry in rows.filter(pk__in=ids)}
        return [found[pk] for pk in ids if pk in found]
    rows = _with_alike(chosen.apply(entry_rows(team_id)), team_id, chosen)
    if chosen.by_cluster:
        rows = rows.filter(Q(cluster=None) | Q(pk__in=_first_of_each(team_id, chosen)))
    if before_id is not None:
        last = ReplayEntry.objects.filter(team_id=team_id, pk=before_id)
        is_flawed = bool(last.values_list("has_bad_turns", flat=True).first())
        behind = Q(has_bad_turns=is_flawed, pk__lt=before_id)
        rows = rows.filter(behind if is_flawed else behind | Q(has_bad_turns=True))
    return list(rows[:limit])


def _first_of_each(team_id: int, chosen: EntryFilter) -> QuerySet[ReplayEntry, Any]:
    """Of every cluster in a filter the entry that comes first: the newest good one, else the newest."""
    rows = chosen.apply(ReplayEntry.objects.filter(team_id=team_id, cluster__isnull=False))
    first = Coalesce(Max("pk", filter=Q(has_bad_turns=False)), Max("pk"))
    return rows.order_by().values("cluster").annotate(first=first).values("first")


def _alike(team_id: int, chosen: EntryFilter) -> QuerySet[ReplayEntry]:
    """Entries of a filter in the cluster of an outer one."""
    return chosen.apply(ReplayEntry.objects.filter(team_id=team_id, cluster=OuterRef("cluster"))).order_by()


def _with_alike(rows: QuerySet[ReplayEntry], team_id: int, chosen: EntryFilter) -> QuerySet[ReplayEntry]:
    """With the number of others that a row stands for."""
    if not chosen.by_cluster:
        return rows
    counted = _alike(team_id, chosen).values("cluster").annotate(num=Count("pk")).values("num")
    return rows.annotate(num_alike=Coalesce(Subquery(counted), 1) - 1)
