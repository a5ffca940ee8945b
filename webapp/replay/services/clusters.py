"""Like entries of a task in the replay buffer, compared and kept in clusters."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Min, QuerySet

from webapp.replay.likeness import Step, alike, outline_of, screens_hash
from webapp.replay.models import ReplayEntry, Verdict
from webapp.replay.turn_edits import TurnEdit

DUPLICATE_TAG = "near-duplicate"
MAX_KEEP = 100
PIECE = 10
"""Entries that are compared within one piece of the dispatcher's upkeep."""


@dataclass(frozen=True, slots=True)
class Founder:
    """The oldest entry of a cluster, which others are compared with."""

    cluster: int
    outline: list[Step]
    screens: str

    def is_like(self, outline: list[Step], screens: str) -> bool:
        return alike(self.outline, outline, self.screens, screens)


def compare_waiting() -> Iterator[int]:
    """Give each new entry its cluster, `PIECE` entries at a time; yields how many. One process does it.

    An entry joins the first cluster of its task whose founder it is near-identical to, or founds one.
    """
    founders: dict[tuple[int, int], list[Founder]] = {}
    waiting = ReplayEntry.objects.filter(cluster=None).select_related("trajectory").order_by("id")
    while rows := list(waiting[:PIECE]):
        for entry in rows:
            _compare(entry, founders)
        yield len(rows)


def _compare(entry: ReplayEntry, founders: dict[tuple[int, int], list[Founder]]) -> None:
    edit, rows = TurnEdit.read(entry.edit), entry.trajectory.turns.order_by("index")
    rows = rows.only("trajectory", "index", "frame", "action", "earlier_actions")
    turns = [turn for turn in rows if edit.state_of(turn.index) == "trained"]
    outline = outline_of(turns)
    screens = screens_hash([turn.frame for turn in turns if turn.frame])
    key = (entry.team_id, entry.trajectory.task_id)
    if key not in founders:
        founders[key] = _founders(*key)
    found = next((one.cluster for one in founders[key] if one.is_like(outline, screens)), None)
    if found is None:
        found = entry.pk
        founders[key].append(Founder(entry.pk, outline, screens))
    ReplayEntry.objects.filter(pk=entry.pk).update(outline=outline, screens=screens, cluster=found)


def _founders(team_id: int, task_id: int) -> list[Founder]:
    """Of each cluster of the task, the oldest entry that is still there."""
    known = ReplayEntry.objects.filter(team_id=team_id, trajectory__task_id=task_id, cluster__isnull=False)
    oldest = known.order_by().values("cluster").annotate(first=Min("id")).values("first")
    rows = ReplayEntry.objects.filter(pk__in=oldest).order_by("id")
    return [
        Founder(cluster or 0, outline or [], screens)
        for cluster, outline, screens in rows.values_list("cluster", "outline", "screens")
    ]


def surplus_of(rows: QuerySet[ReplayEntry], keep: int) -> list[int]:
    """Ids of the entries beyond the best `keep` of each cluster."""
    rank = {Verdict.GOLD: 0, Verdict.ACCEPTED: 1}
    columns = ("pk", "cluster", "verdict", "trajectory__reward", "trajectory__num_turns")
    found = sorted(
        (cluster, rank.get(Verdict(verdict), 2), -(reward or 0.0), num_turns, -pk)
        for pk, cluster, verdict, reward, num_turns in rows.order_by().values_list(*columns)
    )
    kept: dict[int, int] = {}
    surplus = []
    for cluster, order, _, _, negative_pk in found:
        kept[cluster] = kept.get(cluster, 0) + 1
        if kept[cluster] > keep and order:
            surplus.append(-negative_pk)
    return surplus
