"""What a run removes, rule by rule, and what a team keeps."""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.models import Count, Sum

from webapp.accounts.models import Team
from webapp.experiments.models import CheckpointRecord
from webapp.retention.models import RetentionRule
from webapp.retention.queries.prunable import Batch
from webapp.trajectories.models import Frame


@dataclass(slots=True)
class RuleSummary:
    rule: RetentionRule
    num_trajectories: int = 0
    num_for_age: int = 0
    num_frames: int = 0
    num_bytes: int = 0
    is_least: bool = False
    """There was no time to count all."""


def summaries(
    rules: list[RetentionRule], batches: Iterable[Batch], max_s: float = math.inf
) -> list[RuleSummary]:
    """One per rule, in their order; what was not counted after `max_s` seconds is missing."""
    found = {rule.pk: RuleSummary(rule) for rule in rules}
    ends = time.monotonic() + max_s
    for batch in batches:
        one = found.setdefault(batch.rule.pk, RuleSummary(batch.rule))
        one.num_trajectories += len(batch.trajectories)
        one.num_for_age += len(batch.trajectories) * batch.is_for_age
        one.num_frames += len(batch.frames)
        one.num_bytes += batch.num_bytes
        if time.monotonic() > ends:
            order = list(found)
            for pk in order[order.index(batch.rule.pk) :]:
                found[pk].is_least = True
            break
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes on disks."""

    frames: int
    """Of the team, as far as measured."""
    num_frames: int
    num_unmeasured: int
    """Of these, which the dispatcher measures every few minutes."""
    checkpoints: int
    """Of the team, of those that are still there."""
    database: int
    """Of all teams."""


def usage_of(team: Team) -> Usage:
    """What the page shows of a team."""
    frames = Frame.objects.filter(team=team).aggregate(
        total=Sum("num_bytes"), count=Count("pk"), measured=Count("num_bytes")
    )
    kept = CheckpointRecord.objects.filter(experiment__team=team, deleted_at=None)
    return Usage(
        frames=frames["total"] or 0,
        num_frames=frames["count"],
        num_unmeasured=frames["count"] - frames["measured"],
        checkpoints=kept.aggregate(total=Sum("size_bytes"))["total"] or 0,
        database=_database_bytes(),
    )


def _database_bytes() -> int:
    if connection.vendor == "sqlite":
        path = Path(str(settings.DATABASES["default"]["NAME"]))
        return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*") if file.is_file())
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])
