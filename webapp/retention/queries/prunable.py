"""Which trajectories a rule lets go, and what that frees.

Never: what still runs or belongs to an experiment that may go on, replay entries (unless rejected), gold,
demonstrations and oracles' trajectories, what a person drove, and what branches were made from.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from training.contracts.types import Purpose, Source
from webapp.experiments.models import FINAL_STATUSES
from webapp.replay.models import USABLE_VERDICTS, Verdict
from webapp.retention.models import RetentionRule
from webapp.trajectories.models import Frame, SnapshotStatus, Trajectory, TurnRecord

BATCH = 20
"""Trajectories that go together: one short transaction."""
SHOWN = ("frame", "plain", "accessibility", "terminal")
"""Columns of a turn that name a `Frame`."""
MOST = 10_000
"""Of one rule in one run; the next one goes on."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Trajectories of one experiment's or the team's rule, and what only they show."""

    rule: RetentionRule
    trajectories: tuple[int, ...]
    frames: tuple[str, ...]
    """sha256 of those that nothing else shows."""
    num_bytes: int
    is_for_age: bool


def prunable(rule: RetentionRule) -> QuerySet[Trajectory]:
    """What may go at all under this rule, oldest first."""
    rows = Trajectory.objects.filter(team_id=rule.team_id, ended_at__isnull=False, pruned_at=None)
    if rule.experiment_id:
        rows = rows.filter(experiment_id=rule.experiment_id)
    else:
        rows = rows.filter(experiment__retention_rule=None)
    kept = (
        Q(purpose=Purpose.DEMONSTRATION)
        | Q(source__in=(Source.HUMAN, Source.ORACLE))
        | Q(replay_entries__verdict__in=(Verdict.INBOX, *USABLE_VERDICTS))
        | Q(branch_groups__isnull=False)
        | Q(snapshots__status=SnapshotStatus.KEPT)
        | (Q(experiment__isnull=False) & ~Q(experiment__status__in=FINAL_STATUSES))
    )
    # Asked row by row: few rows are old enough, and a set of all that is kept would be made for them.
    return rows.exclude(Exists(Trajectory.objects.filter(kept, pk=OuterRef("pk")))).order_by("ended_at", "id")


def batches(rule: RetentionRule) -> Iterator[Batch]:
    """What goes by age, then by bytes; each batch supposes that those before it are gone."""
    gone: set[int] = set()
    freed = 0
    rows = prunable(rule)
    used = 0 if rule.max_bytes is None else used_bytes(rule)
    if rule.max_age_days is not None:
        limit = timezone.now() - timedelta(days=rule.max_age_days)
        for ids in _chunks(rows.filter(ended_at__lt=limit)):
            yield (batch := _batch(rule, ids, gone, is_for_age=True))
            freed += batch.num_bytes
    if rule.max_bytes is None:
        return
    excess = used - freed - rule.max_bytes
    for ids in _chunks(rows.exclude(pk__in=list(gone))) if excess > 0 else ():
        yield (batch := _batch(rule, ids, gone, is_for_age=False))
        excess -= batch.num_bytes
        if excess <= 0:
            return


def used_bytes(rule: RetentionRule) -> int:
    """Of the screenshots that the rule is about, as far as they have been measured."""
    frames = Frame.objects.filter(team_id=rule.team_id)
    if rule.experiment_id:
        shown = TurnRecord.objects.filter(trajectory__experiment_id=rule.experiment_id)
        named = Q()
        for column in SHOWN:
            named |= Q(sha256__in=shown.exclude(**{column: None}).values(column))
        frames = frames.filter(named)
    return frames.aggregate(total=Sum("num_bytes"))["total"] or 0


def shown_by(turns: QuerySet[TurnRecord]) -> set[str]:
    """Screenshots and texts of turns."""
    return {sha for row in turns.values_list(*SHOWN) for sha in row if sha}


def is_shown_by_others(sha256: str, gone: Container[int]) -> bool:
    """Whether a trajectory that stays shows this screenshot or text."""
    shows = Q(frame=sha256) | Q(plain=sha256) | Q(accessibility=sha256) | Q(terminal=sha256)
    turns = TurnRecord.objects.filter(shows).values_list("trajectory_id", flat=True)
    ends = Trajectory.objects.filter(final_frame=sha256).values_list("pk", flat=True)
    return any(pk not in gone for rows in (turns, ends) for pk in rows.iterator(chunk_size=500))


def _batch(rule: RetentionRule, ids: tuple[int, ...], gone: set[int], *, is_for_age: bool) -> Batch:
    """`gone` grows by `ids`."""
    gone.update(ids)
    shown = shown_by(TurnRecord.objects.filter(trajectory_id__in=ids))
    shown.update(Trajectory.objects.filter(pk__in=ids).values_list("final_frame", flat=True))
    frames = tuple(sha for sha in sorted(shown - {""}) if not is_shown_by_others(sha, gone))
    sizes = Frame.objects.filter(team_id=rule.team_id, sha256__in=frames).aggregate(total=Sum("num_bytes"))
    return Batch(rule, ids, frames, sizes["total"] or 0, is_for_age)


def _chunks(rows: QuerySet[Trajectory]) -> Iterator[tuple[int, ...]]:
    ids = list(rows.values_list("pk", flat=True)[:MOST])
    return (tuple(ids[start : start + BATCH]) for start in range(0, len(ids), BATCH))
