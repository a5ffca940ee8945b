"""Deleting what the rules let go, a short transaction at a time."""

import logging
import time
from collections.abc import Iterator

from django.db import transaction
from django.utils import timezone

from webapp.lib.media.errors import StorageAway, StorageRefused
from webapp.retention.deletion_lock import deletion_allowed
from webapp.retention.models import RetentionRule
from webapp.retention.queries.prunable import Batch, batches, is_shown_by_others, prunable
from webapp.retention.services.frame_sizes import measure_frames
from webapp.trajectories.models import Frame, Trajectory, TurnRecord
from webapp.trajectories.services.frames import delete_unused_frames

log = logging.getLogger(__name__)
MEASURED_AT_ONCE = 20
UNUSED_S = 3600.0
"""A file that was stored or stored again lately may be about to be named by a turn."""


def prune() -> Iterator[Batch]:
    """Do what all rules say; yields after each batch that went."""
    for rule in RetentionRule.objects.select_related("team", "experiment"):
        for batch in batches(rule):
            with deletion_allowed() as is_allowed:
                if not is_allowed:
                    log.info("retention waits: a backup is being made")
                    return
                delete(batch)
            yield batch


def plan(rules: list[RetentionRule]) -> Iterator[Batch]:
    """What the next run would remove by these rules; deletes nothing."""
    for rule in rules:
        yield from batches(rule)


def delete(batch: Batch) -> None:
    """Turns and screens go, figures stay; then the files that nothing shows any more."""
    with transaction.atomic():
        # Asked again: since the batch was chosen one may have been accepted for replay.
        ids = list(prunable(batch.rule).filter(pk__in=batch.trajectories).values_list("pk", flat=True))
        TurnRecord.objects.filter(trajectory_id__in=ids).delete()
        Trajectory.objects.filter(pk__in=ids).update(
            pruned_at=timezone.now(), last_frame="", final_frame="", thumbnail=""
        )
    unused_since = time.time() - UNUSED_S
    unused = [sha for sha in batch.frames if not is_shown_by_others(sha, ())]
    deleted = delete_unused_frames(unused, unused_since)
    Frame.objects.filter(sha256__in=deleted).delete()


def scheduled() -> Iterator[object]:
    """The dispatcher's upkeep: sizes of new frames, then the rules."""
    num_trajectories = num_bytes = 0
    try:
        while measure_frames(MEASURED_AT_ONCE):
            yield None
        for batch in prune():
            num_trajectories += len(batch.trajectories)
            num_bytes += batch.num_bytes
            yield None
    except (StorageAway, StorageRefused) as error:
        log.warning("retention goes on in its next round: %s", error)
    if num_trajectories:
        log.info("retention: %d trajectories pruned, %d bytes of screenshots", num_trajectories, num_bytes)
