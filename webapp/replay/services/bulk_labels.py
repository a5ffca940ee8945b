"""One verdict for many replay entries; those with unparsable or refused turns are accepted trimmed only."""

import secrets
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet

from webapp.accounts.models import AuditAction
from webapp.lib.request_values import BadValue
from webapp.lib.tags import MAX_TAGS
from webapp.replay.models import USABLE_VERDICTS, LabelEvent, ReplayEntry, Verdict
from webapp.replay.services.labels import (
    LABEL_COLUMNS,
    LIKENESS_COLUMNS,
    TURN_COLUMNS,
    assign,
    check_label,
    follow_edit,
    label_entry,
    record_label,
    snapshot,
    to_settle,
)
from webapp.replay.turn_edits import TurnEdit
from webapp.trajectories.models import TurnRecord

MAX_BULK = 5000
"""Entries of one bulk change."""
Turns = dict[int, list[TurnRecord]]
"""By trajectory."""


@dataclass(frozen=True, slots=True)
class BulkLabel:
    """What became of the entries."""

    changed: int
    held_back: int
    """Not accepted: turns of them were unparsable or refused."""


def label_alike(
    *, entry: ReplayEntry, user: User, verdict: str, expected_verdict: str | None = None, trim: bool = False
) -> int:
    """One verdict for an entry and all near-identical ones that wait, with one undo; how many changed.

    Raises as `label_entry` does; of the others, those with unparsable or refused turns are left when
    they may not be trimmed.
    """
    batch = secrets.token_hex(16)
    with transaction.atomic():
        waiting = ReplayEntry.objects.filter(team_id=entry.team_id, verdict=Verdict.INBOX)
        others = waiting.filter(cluster=entry.cluster).exclude(pk=entry.pk)
        done = label_many(entries=others, user=user, verdict=verdict, trim=trim, batch=batch)
        own = label_entry(
            entry=entry, user=user, verdict=verdict, expected_verdict=expected_verdict, trim=trim
        )
        if own is not None:
            LabelEvent.objects.filter(pk=own.pk).update(batch=batch)
    return done.changed + (own is not None)


def label_many(
    *,
    entries: QuerySet[ReplayEntry],
    user: User,
    verdict: str,
    add_tag: str = "",
    trim: bool = False,
    batch: str = "",
) -> BulkLabel:
    """One verdict, and one more tag, for all of `entries`, one undoable event each.

    What a review holds to settle is left out: people decide on it there. An entry that has `MAX_TAGS` already
    keeps those. With `trim` what would be held back is accepted without
    its bad turns, unless no good one is left.
    """
    wanted = check_label(verdict, None, None)
    batch = batch or secrets.token_hex(16)
    with transaction.atomic():
        free = entries.exclude(pk__in=to_settle())
        rows = list(free.select_for_update(of=("self",)).order_by("id")[:MAX_BULK])
        flawed = [row for row in rows if row.has_bad_turns and verdict in USABLE_VERDICTS]
        edits = _trimmed(flawed) if trim else {}
        held_back = {row.pk for row in flawed} - edits.keys()
        changed, events = [], []
        for entry in rows:
            if entry.pk in held_back:
                continue
            before = snapshot(entry)
            edit = edits.get(entry.pk, before["edit"])
            after = {**before, **wanted, "tags": _with_tag(before["tags"], add_tag), "edit": edit}
            if after == before:
                continue
            events.append(LabelEvent(entry=entry, by=user, before=before, after=after, batch=batch))
            changed.append(assign(entry, after, user))
        LabelEvent.objects.bulk_create(events, batch_size=500)
        if changed:
            _store(changed, edits.keys(), is_equal=not add_tag)
            record_label(AuditAction.LABELLED, changed[0], user, after=verdict, entries=len(changed))
    return BulkLabel(len(changed), len(held_back))


def _trimmed(entries: list[ReplayEntry]) -> dict[int, dict[str, object]]:
    """Entry -> the edit with which it is accepted; none of those without a good turn."""
    turns: Turns = defaultdict(list)
    rows = TurnRecord.objects.filter(trajectory__in={entry.trajectory_id for entry in entries})
    for turn in rows.only(*TURN_COLUMNS).order_by("trajectory_id", "index"):
        turns[turn.trajectory_id].append(turn)
    found = {}
    for entry in entries:
        try:
            edit = TurnEdit.read(entry.edit).trimmed(turns[entry.trajectory_id])
        except BadValue:
            continue
        found[entry.pk] = edit.as_json()
    return found


def _with_tag(tags: list[str], tag: str) -> list[str]:
    if not tag or tag in tags or len(tags) >= MAX_TAGS:
        return tags
    return [*tags, tag]


def _store(changed: list[ReplayEntry], edited: Iterable[int], *, is_equal: bool) -> None:
    """Write the labels of many rows; those that are equal but for their tags need fewer statements."""
    own = set(edited)
    trimmed = [entry for entry in changed if entry.pk in own]
    for entry in trimmed:
        follow_edit(entry)
    ReplayEntry.objects.bulk_update(trimmed, [*LABEL_COLUMNS, *LIKENESS_COLUMNS], batch_size=100)
    others = [entry for entry in changed if entry.pk not in own]
    if not is_equal:
        ReplayEntry.objects.bulk_update(others, LABEL_COLUMNS, batch_size=100)
        return
    for start in range(0, len(others), 500):
        some = others[start : start + 500]
        rows = ReplayEntry.objects.filter(pk__in=[entry.pk for entry in some])
        rows.update(verdict=some[0].verdict, labelled_by=some[0].labelled_by, labelled_at=some[0].labelled_at)
