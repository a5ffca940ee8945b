"""Clusters of near-identical entries: the dispatcher finds them, people keep the best of each."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Count, Max, Q, QuerySet

from webapp.accounts.models import Team
from webapp.lib.request_values import BadValue
from webapp.replay.filters import EntryFilter
from webapp.replay.models import USABLE_VERDICTS, ReplayEntry, Verdict
from webapp.replay.services.bulk_labels import MAX_BULK, label_many
from webapp.replay.services.clusters import DUPLICATE_TAG, MAX_KEEP, surplus_of
from webapp.replay.services.labels import to_settle

PAGE_SIZE = 25


# --- looking at them ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cluster:
    """Entries of one task that are near-identical."""

    pk: int
    num: int
    num_gold: int
    num_usable: int
    """Gold ones among them."""
    num_inbox: int
    best_reward: float | None
    newest: Any
    """datetime"""
    shown: ReplayEntry
    """Its newest entry, with trajectory and task."""


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """Clusters of at least two, largest first."""

    clusters: list[Cluster]
    num_clusters: int
    """Of at least two, on all pages."""
    num_alone: int
    num_entries: int
    num_waiting: int
    """Entries that have not been compared yet."""
    num_surplus: int
    """Entries that keeping the best `keep` of each cluster would reject."""
    has_more: bool


def clusters_of(team_id: int, chosen: EntryFilter, *, keep: int, page: int = 0) -> ClusterPage:
    """A page of the clusters within a filter; rejected entries are left out."""
    rows = _within(team_id, chosen)
    grouped = rows.filter(cluster__isnull=False).order_by().values_list("cluster")
    gold = Count("id", filter=Q(verdict=Verdict.GOLD))
    sizes = list(grouped.annotate(num=Count("id"), num_gold=gold))
    many = sorted((size for size in sizes if size[1] > 1), key=lambda size: (-size[1], size[0]))
    start = page * PAGE_SIZE
    return ClusterPage(
        clusters=_described(rows, [cluster for cluster, _, _ in many[start : start + PAGE_SIZE]]),
        num_clusters=len(many),
        num_alone=len(sizes) - len(many),
        num_entries=sum(num for _, num, _ in sizes),
        num_waiting=rows.filter(cluster=None).count(),
        num_surplus=sum(num - max(min(keep, num), num_gold) for _, num, num_gold in many),
        has_more=len(many) > start + PAGE_SIZE,
    )


def _within(team_id: int, chosen: EntryFilter) -> QuerySet[ReplayEntry]:
    return chosen.apply(ReplayEntry.objects.filter(team_id=team_id)).exclude(verdict=Verdict.REJECTED)


def _described(rows: QuerySet[ReplayEntry], clusters: list[int]) -> list[Cluster]:
    grouped = rows.filter(cluster__in=clusters).order_by().values("cluster")
    found = grouped.annotate(
        num=Count("id"),
        num_gold=Count("id", filter=Q(verdict=Verdict.GOLD)),
        num_usable=Count("id", filter=Q(verdict__in=USABLE_VERDICTS)),
        num_inbox=Count("id", filter=Q(verdict=Verdict.INBOX)),
        best_reward=Max("trajectory__reward"),
        newest=Max("created_at"),
        last=Max("id"),
    )
    by_cluster: dict[int, dict[str, Any]] = {row["cluster"] or 0: {**row} for row in found}
    shown = ReplayEntry.objects.select_related("trajectory__task").defer("outline", "trajectory__task__spec")
    entries = shown.in_bulk([row.pop("last") for row in by_cluster.values()])
    by_entry = {entry.cluster: entry for entry in entries.values()}
    for pk, row in by_cluster.items():
        row |= {"pk": pk, "shown": by_entry.get(row.pop("cluster"))}
    return [Cluster(**by_cluster[pk]) for pk in clusters if pk in by_cluster]


# --- keeping the best --------------------------------------------------------------------------------


def keep_best(
    *, team: Team, user: User, chosen: EntryFilter, keep: int, cluster: int | None = None
) -> tuple[int, int]:
    """Reject all but the best `keep` of a cluster, or of every cluster within the filter, as one change.

    Best: gold, then accepted; the higher reward; fewer turns; the newer. Gold ones are never rejected.
    Returns how many were rejected, and how many are left to reject because `MAX_BULK` were. Raises BadValue.
    """
    if not 1 <= keep <= MAX_KEEP:
        raise BadValue("keep", f"must be from 1 to {MAX_KEEP}")
    rows = _within(team.pk, chosen).filter(cluster__isnull=False)
    if cluster is not None:
        rows = rows.filter(cluster=cluster)
    surplus = surplus_of(rows.exclude(pk__in=to_settle()), keep)
    entries = ReplayEntry.objects.filter(team=team, pk__in=surplus[:MAX_BULK])
    changed = label_many(entries=entries, user=user, verdict=Verdict.REJECTED, add_tag=DUPLICATE_TAG).changed
    return changed, max(0, len(surplus) - MAX_BULK)
