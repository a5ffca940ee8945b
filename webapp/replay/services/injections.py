"""Which entries an experiment may inject, and which it did."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from training.contracts.trainer_reports import ReplaySkip, ReplayUse
from training.contracts.types import Trajectory as WireTrajectory
from webapp.accounts.models import Team
from webapp.experiments.models import Experiment, TaskRecord
from webapp.experiments.services.statuses import record_incident
from webapp.replay.models import (
    USABLE_VERDICTS,
    ReplayEntry,
    ReplaySkipRecord,
    ReplayUseRecord,
    SnapshotEntry,
    Verdict,
)
from webapp.replay.turn_edits import TurnEdit, as_trained
from webapp.replay.turn_ratings import bad_turns

# --- use in training ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Offer:
    """An entry as an experiment may use it."""

    entry: ReplayEntry
    label: str
    """accepted | gold"""
    edit: TurnEdit
    bad_turns: list[int]
    """Indexes of the turns without a loss."""

    def as_injected(self, trajectory: WireTrajectory) -> WireTrajectory:
        """`trajectory`, the entry's, as it is trained on: trimmed, corrected, without bad turns' loss."""
        return as_trained(trajectory, self.edit, self.bad_turns)


def offers(*, team: Team, task: TaskRecord, snapshot: int = 0) -> list[Offer]:
    """Accepted and gold entries of `task`, best first: gold, seldom used, new. Held-out tasks have none.

    `snapshot`: the team's, whose entries are offered as they were; 0 = the buffer as it is.
    """
    rows = ReplayEntry.objects.filter(team=team, trajectory__task=task)
    rows = rows.exclude(trajectory__experiment__is_sample=True)
    rows = rows.select_related("trajectory__task", "trajectory__experiment", "trajectory__group")
    rows = rows.prefetch_related("trajectory__turns", "trajectory__process_labels")
    if task.split != "train":
        return []
    if snapshot:
        frozen = SnapshotEntry.objects.filter(snapshot=snapshot, snapshot__team=team)
        kept = {one.entry_id: one for one in frozen.filter(entry__trajectory__task=task)}
        found = [
            Offer(entry, one.verdict, TurnEdit.read(one.edit), one.bad_turns)
            for entry in rows.filter(pk__in=list(kept))
            if (one := kept[entry.pk])
        ]
    else:
        found = [
            Offer(
                entry,
                entry.verdict,
                TurnEdit.read(entry.edit),
                bad_turns(entry.trajectory.process_labels.all()),
            )
            for entry in rows.filter(verdict__in=USABLE_VERDICTS)
        ]
    return sorted(found, key=lambda one: (one.label != Verdict.GOLD, one.entry.num_uses, -one.entry.pk))


def record_uses(*, experiment: Experiment, uses: Iterable[ReplayUse]) -> int:
    """Store injections as the trainer reports them; a repeated report changes nothing. Returns how many.

    Those of entries that were deleted meanwhile are left out.
    """
    uses, num_new = list(uses), 0
    with transaction.atomic():
        kept = _kept({use.entry_id for use in uses})
        for use in [one for one in uses if one.entry_id in kept]:
            _, is_new = ReplayUseRecord.objects.get_or_create(
                entry_id=use.entry_id,
                group_id=use.group_id,
                step=use.step,
                defaults={
                    "experiment": experiment,
                    "replaced_id": use.replaced_trajectory_id,
                    "policy_age": use.policy_age,
                    "as_likelihood": use.as_likelihood,
                    "advantage": use.advantage,
                    "importance_ratio": use.importance_ratio,
                },
            )
            if is_new:
                ReplayEntry.objects.filter(pk=use.entry_id).update(num_uses=F("num_uses") + 1)
                num_new += 1
    return num_new


def _kept(entries: set[int]) -> set[int]:
    """Those that were not deleted since the trainer had them."""
    return set(ReplayEntry.objects.filter(pk__in=entries).values_list("pk", flat=True))


def record_skips(*, experiment: Experiment, skips: Iterable[ReplaySkip]) -> None:
    """Count the entries that the trainer could not use; the first ones of a reason are shown on its page.

    Those that were deleted meanwhile are left out.
    """
    skips = list(skips)
    kept = _kept({skip.entry_id for skip in skips})
    with transaction.atomic():
        reported = set(experiment.replay_skips.values_list("reason", flat=True).distinct())
        by_reason: dict[str, list[ReplaySkip]] = defaultdict(list)
        for skip in skips:
            if skip.entry_id in kept:
                by_reason[skip.reason].append(skip)
                _count_skip(experiment, skip)
        for reason, found in by_reason.items():
            if reason not in reported:
                record_incident(experiment.pk, "replay_skipped", skip_words(found))


def skip_words(skips: Sequence[ReplaySkip]) -> str:
    """Several skips of one reason in one sentence."""
    number = len({skip.entry_id for skip in skips})
    example = f"entry {skips[0].entry_id}: {skips[0].message}"
    if number == 1:
        return f"A replay entry could not be used: {example}."
    return f"{number} replay entries could not be used, such as {example}."


def _count_skip(experiment: Experiment, skip: ReplaySkip) -> None:
    row, is_new = ReplaySkipRecord.objects.get_or_create(
        entry_id=skip.entry_id,
        experiment=experiment,
        reason=skip.reason,
        defaults={"message": skip.message},
    )
    if not is_new:
        ReplaySkipRecord.objects.filter(pk=row.pk).update(
            num_times=F("num_times") + 1, message=skip.message, at=timezone.now()
        )
