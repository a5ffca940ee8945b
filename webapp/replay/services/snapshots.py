"""Versions of admission policies, and snapshots of the buffer that experiments pin (`replay.snapshot`)."""

from collections import defaultdict

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.accounts.services.named_versions import save_version
from webapp.experiments.models import Experiment
from webapp.lib.request_values import BadValue, check_text
from webapp.replay.models import (
    AdmissionPolicy,
    BufferSnapshot,
    ProcessLabel,
    ReplayEntry,
    SnapshotEntry,
)
from webapp.replay.queries.rules import Rules, admit
from webapp.replay.queries.sorting import Surroundings
from webapp.replay.turn_ratings import bad_turns

CHUNK = 500


def save_policy(*, team: Team, user: User, name: str, rules: Rules, note: str = "") -> AdmissionPolicy:
    """The next version of `name`; older ones stay as they are. Raises BadValue."""
    values = rules.model_dump(mode="json", exclude_defaults=True)
    return save_version(
        AdmissionPolicy, team=team, user=user, name=name, kind="admission policy", note=note, rules=values
    )


def take_snapshot(*, policy: AdmissionPolicy, user: User, name: str) -> BufferSnapshot:
    """Keep what the policy lets in now, with labels, edits and bad turns as they are. Raises BadValue."""
    check_text(name, "name")
    name = name.strip()
    if not 1 <= len(name) <= 60:
        raise BadValue("name", "a snapshot needs a name of 1 to 60 characters")
    team = policy.team
    with transaction.atomic():
        found = admit(team, Rules.read(policy.rules), Surroundings(team.pk))
        if not found.entering:
            raise BadValue("policy", f"{policy} lets no entry in: there is nothing to keep")
        snapshot = BufferSnapshot.objects.create(
            team=team, name=name, policy=policy, owner=user, num_entries=len(found.entering)
        )
        entries = [facts.pk for facts in found.entering]
        for start in range(0, len(entries), CHUNK):
            SnapshotEntry.objects.bulk_create(_members(snapshot, entries[start : start + CHUNK]))
    log_action(AuditAction.SAVED, person=user, team=team, kind="buffer snapshot", object_id=str(snapshot.pk))
    return snapshot


def _members(snapshot: BufferSnapshot, entries: list[int]) -> list[SnapshotEntry]:
    labels = defaultdict(list)
    rows = ReplayEntry.objects.filter(pk__in=entries).only("verdict", "edit", "trajectory_id")
    for label in ProcessLabel.objects.filter(trajectory__in=rows.values("trajectory")):
        labels[label.trajectory_id].append(label)
    return [
        SnapshotEntry(
            snapshot=snapshot,
            entry=entry,
            verdict=entry.verdict,
            edit=entry.edit,
            bad_turns=bad_turns(labels[entry.trajectory_id]),
        )
        for entry in rows
    ]


def pins_of(team: Team) -> dict[int, list[Experiment]]:
    """Snapshot -> experiments that pin it, newest first."""
    rows = Experiment.objects.filter(team=team, config__replay__snapshot__gt=0).order_by("-id")
    found: dict[int, list[Experiment]] = defaultdict(list)
    for experiment in rows:
        found[experiment.config["replay"]["snapshot"]].append(experiment)
    return dict(found)


def snapshots_of(team: Team) -> list[BufferSnapshot]:
    """Newest first, with `num_left`, entries that are still there."""
    rows = team.buffer_snapshots.select_related("policy", "owner")
    return list(rows.annotate(num_left=Count("members"))[:50])
