"""Which entries an experiment may inject, and which it did."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import F, IntegerField, Q, QuerySet
from django.db.models.functions import Cast

from training.contracts.trainer_reports import ReplayUse
from webapp.accounts.models import Team
from webapp.experiments.models import Experiment, TaskRecord
from webapp.replay.models import USABLE_VERDICTS, ReplayEntry, ReplayUseRecord

# --- use in training ---------------------------------------------------------------------------------


def usable_entries(*, team: Team, task: TaskRecord, max_policy_age: int) -> QuerySet[ReplayEntry]:
    """Accepted and gold entries of `task`, best first: gold, seldom used, new. Held-out tasks have none.

    `recorded_policy_age` says how many versions the recording experiment went on after the entry; it is
    None for entries without a policy (oracle, human), which are never too old.
    """
    if task.split != "train":
        return ReplayEntry.objects.none()
    age = Cast(F("trajectory__experiment__policy_version") - F("trajectory__policy_version"), IntegerField())
    rows = (
        ReplayEntry.objects.filter(team=team, trajectory__task=task, verdict__in=USABLE_VERDICTS)
        .select_related("trajectory__task", "trajectory__experiment", "trajectory__group")
        .annotate(recorded_policy_age=age)
    )
    young = Q(recorded_policy_age=None) | Q(recorded_policy_age__lte=max_policy_age)
    return rows.filter(young).order_by(
        # "gold" sorts after "accepted"
        "-verdict",
        "num_uses",
        "-id",
    )


def record_uses(*, experiment: Experiment, uses: Iterable[ReplayUse]) -> int:
    """Store injections as the trainer reports them; a repeated report changes nothing. Returns how many."""
    num_new = 0
    with transaction.atomic():
        for use in uses:
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
