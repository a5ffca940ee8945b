"""Labels of replay entries: verdict, tags, note and edit, with undo.

A label is an event: it holds what was before and after, and an undo is one more event that restores the
`before` of the one it undoes. The entry's columns are the latest `after`. Every change locks its entry, so
of two people who answer the same question one wins and the other is told who was first.
"""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.audit.log_action import log_action
from webapp.accounts.models import AuditAction, Team
from webapp.lib.request_values import shortened
from webapp.lib.tags import MAX_TAGS, checked_tags
from webapp.replay.automatic_checks import signature_of
from webapp.replay.models import LabelEvent, ReplayEntry, ReviewItem, Verdict
from webapp.replay.turns.turn_edits import TurnEdit

MAX_NOTE = 4000
MAX_BULK = 5000
"""Entries of one bulk change."""


class LabelConflict(Exception):
    """Raised when another person changed the entry first; `entry` is as it is now."""

    def __init__(self, entry: ReplayEntry, message: str) -> None:
        super().__init__(message)
        self.entry = entry


class NothingToUndo(Exception):
    """Raised when the entry, or the user, has no label that can be taken back."""


# --- labels ------------------------------------------------------------------------------------------


def label_entry(
    *,
    entry: ReplayEntry,
    user: User,
    verdict: str | None = None,
    tags: list[str] | None = None,
    note: str | None = None,
    edit: dict[str, Any] | None = None,
    expected_verdict: str | None = None,
    batch: str = "",
) -> LabelEvent | None:
    """Change verdict, tags, note or edit (None leaves one as it is); None when nothing differs.

    `edit`: of `turns.turn_edits`, checked. `expected_verdict` is what the person saw. Raises LabelConflict
    when the entry has another one by now, ValueError naming the field for a value that cannot be stored.
    """
    wanted = check_label(verdict, tags, note)
    if edit is not None:
        wanted["edit"] = edit
    with transaction.atomic():
        locked = ReplayEntry.objects.select_for_update().get(pk=entry.pk)
        if expected_verdict is not None and locked.verdict != expected_verdict:
            raise LabelConflict(locked, conflict_message(locked))
        before = snapshot(locked)
        after = {**before, **wanted}
        if after == before:
            return None
        event = LabelEvent.objects.create(entry=locked, by=user, before=before, after=after, batch=batch)
        _assign(locked, after, user)
        if after["edit"] != before["edit"]:
            follow_edit(locked)
        locked.save(update_fields=[*LABEL_COLUMNS, *LIKENESS_COLUMNS])
        _record(AuditAction.LABELLED, locked, user, before=before["verdict"], after=after["verdict"])
    _copy(locked, entry)
    return event


def undo_last(*, entry: ReplayEntry, user: User) -> LabelEvent:
    """Take back the newest label of `entry` that was not taken back yet; repeat to go further back.

    Raises NothingToUndo when there is none, LabelConflict when it is another person's.
    """
    with transaction.atomic():
        locked = ReplayEntry.objects.select_for_update().get(pk=entry.pk)
        last = standing_events().filter(entry=locked).order_by("-id").first()
        if last is None:
            raise NothingToUndo(f"Entry {entry.pk} has no label to take back.")
        if last.by_id != user.pk:
            raise LabelConflict(locked, f"The last label is not yours: {conflict_message(locked)}")
        event = _undo(locked, last, user)
        _record(AuditAction.LABEL_UNDONE, locked, user, verdict=locked.verdict)
    _copy(locked, entry)
    return event


def undo_latest(*, team: Team, user: User) -> list[LabelEvent]:
    """Take back the user's newest standing label in `team`; a bulk change as a whole."""
    with transaction.atomic():
        last = standing_events().filter(by=user, entry__team=team).order_by("-id").first()
        if last is None:
            raise NothingToUndo("You have no label left to take back.")
        events = [last]
        if last.batch:
            events = list(standing_events().filter(batch=last.batch, by=user).order_by("-id"))
        # In order of id, as `label_many` does: two that lock the same entries must not wait for each other.
        rows = ReplayEntry.objects.filter(pk__in=[event.entry_id for event in events])
        locked = {row.pk: row for row in rows.select_for_update().order_by("id")}
        newest = _newest_standing(list(locked))
        undone = []
        for event in events:
            entry = locked[event.entry_id]
            if newest.get(entry.pk) == event.pk:
                undone.append(_undo(entry, event, user))
            elif not event.batch:
                raise LabelConflict(entry, f"Another person changed it after you: {conflict_message(entry)}")
        if undone:
            _record(AuditAction.LABEL_UNDONE, last.entry, user, entries=len(undone))
        return undone


def label_many(*, entries: QuerySet[ReplayEntry], user: User, verdict: str, add_tag: str = "") -> int:
    """One verdict, and one more tag, for all of `entries`, one undoable event each; returns how many changed.

    What a review holds to settle is left out: people decide on it there.
    An entry that has `MAX_TAGS` already keeps those.
    """
    wanted = check_label(verdict, None, None)
    batch = secrets.token_hex(16)
    with transaction.atomic():
        changed: list[ReplayEntry] = []
        events = []
        free = entries.exclude(pk__in=to_settle())
        for entry in free.select_for_update(of=("self",)).order_by("id")[:MAX_BULK]:
            before = snapshot(entry)
            after = {**before, **wanted, "tags": _with_tag(before["tags"], add_tag)}
            if after == before:
                continue
            events.append(LabelEvent(entry=entry, by=user, before=before, after=after, batch=batch))
            changed.append(_assign(entry, after, user))
        LabelEvent.objects.bulk_create(events, batch_size=500)
        if changed:
            _store(changed, is_equal=not add_tag)
            _record(AuditAction.LABELLED, changed[0], user, after=verdict, entries=len(changed))
    return len(changed)


def to_settle() -> QuerySet[ReviewItem, Any]:
    """Entries that people of a review see differently, and that no one has settled."""
    return ReviewItem.objects.filter(num_open=0, decided="", expected="").values("entry")


def _with_tag(tags: list[str], tag: str) -> list[str]:
    if not tag or tag in tags or len(tags) >= MAX_TAGS:
        return tags
    return [*tags, tag]


def _store(changed: list[ReplayEntry], *, is_equal: bool) -> None:
    """Write the labels of many rows; those that are equal but for their tags need fewer statements."""
    if not is_equal:
        ReplayEntry.objects.bulk_update(changed, LABEL_COLUMNS, batch_size=100)
        return
    first = changed[0]
    values = {"verdict": first.verdict, "labelled_by": first.labelled_by, "labelled_at": first.labelled_at}
    for start in range(0, len(changed), 500):
        rows = ReplayEntry.objects.filter(pk__in=[entry.pk for entry in changed[start : start + 500]])
        rows.update(**values)


def _record(action: AuditAction, entry: ReplayEntry, user: User, **detail: object) -> None:
    """One row, for many entries too: then it names one of them and how many they were."""
    log_action(action, person=user, team=entry.team_id, kind="entry", object_id=entry.pk, **detail)


LIKENESS_COLUMNS = ["signature", "cluster"]
LABEL_COLUMNS = ["verdict", "tags", "note", "edit", "labelled_by", "labelled_at"]


def standing_events() -> QuerySet[LabelEvent]:
    """Labels that were neither undone nor are undos."""
    return LabelEvent.objects.filter(undoes=None, undone_by=None)


def snapshot(entry: ReplayEntry) -> dict[str, Any]:
    """What a label can change, as kept in events."""
    return {
        "verdict": str(entry.verdict),
        "tags": list(entry.tags),
        "note": entry.note,
        "edit": dict(entry.edit),
    }


def conflict_message(entry: ReplayEntry) -> str:
    """Who made the entry what it is."""
    who = entry.labelled_by.get_username() if entry.labelled_by else "another person"
    return f"Entry {entry.pk} is {entry.get_verdict_display().lower()} by now, set by {who}."


def _newest_standing(entry_ids: list[int]) -> dict[int, int]:
    """entry id -> id of its newest label that still stands."""
    rows = standing_events().filter(entry_id__in=entry_ids).order_by("id").values_list("entry_id", "pk")
    return dict(rows)


def _take_back_part(pk: int) -> None:
    """Delete the entry that a split made. Raises LabelConflict once something was made of it."""
    part = ReplayEntry.objects.select_for_update().filter(pk=pk).first()
    if part is None:
        return
    is_labelled = standing_events().filter(entry=part).exists()
    if is_labelled or part.uses.exists() or part.snapshots.exists():
        raise LabelConflict(part, f"Entry {pk}, which was split off, was labelled or used since; reject it.")
    part.delete()


def _undo(entry: ReplayEntry, event: LabelEvent, user: User) -> LabelEvent:
    if "part" in event.after:
        _take_back_part(event.after["part"])
    undo = LabelEvent.objects.create(
        entry=entry, by=user, before=snapshot(entry), after=event.before, undoes=event, batch=event.batch
    )
    _assign(entry, event.before, user)
    if event.before.get("edit") != event.after.get("edit"):
        follow_edit(entry)
    # The labeller is the person whose label stands again, not the one who undid the next.
    standing = standing_events().filter(entry=entry).order_by("-id").first()
    if standing is not None and entry.verdict != Verdict.INBOX:
        entry.labelled_by_id, entry.labelled_at = standing.by_id, standing.at
    entry.save(update_fields=[*LABEL_COLUMNS, *LIKENESS_COLUMNS])
    return undo


def _assign(entry: ReplayEntry, after: dict[str, Any], user: User) -> ReplayEntry:
    entry.verdict, entry.tags, entry.note = after["verdict"], after["tags"], after["note"]
    entry.edit = after.get("edit", {})
    is_back_in_inbox = entry.verdict == Verdict.INBOX
    entry.labelled_by = None if is_back_in_inbox else user
    entry.labelled_at = None if is_back_in_inbox else timezone.now()
    return entry


def follow_edit(entry: ReplayEntry) -> None:
    """Its turns are others now: another signature, and the dispatcher compares it anew. Saves nothing."""
    edit, turns = TurnEdit.read(entry.edit), entry.trajectory.turns.order_by("index")
    kept = [
        turn for turn in turns.only("trajectory", "index", "action") if edit.state_of(turn.index) != "cut"
    ]
    entry.signature, entry.cluster = signature_of(entry.trajectory.task_id, kept), None


def _copy(source: ReplayEntry, target: ReplayEntry) -> None:
    """Let the caller's object show what was stored."""
    for name in LABEL_COLUMNS:
        setattr(target, name, getattr(source, name))


def check_label(verdict: str | None, tags: list[str] | None, note: str | None) -> dict[str, Any]:
    """The columns to change, as they are stored. Raises ValueError naming the field."""
    wanted: dict[str, Any] = {}
    if verdict is not None:
        if verdict not in Verdict.values:
            raise ValueError(f"verdict: '{shortened(verdict)}' is not one of {', '.join(Verdict.values)}")
        wanted["verdict"] = str(verdict)
    if tags is not None:
        wanted["tags"] = checked_tags(tags)
    if note is not None:
        if not isinstance(note, str):
            raise ValueError("note: not a text")
        if len(note) > MAX_NOTE:
            raise ValueError(f"note: at most {MAX_NOTE} characters, this has {len(note)}")
        wanted["note"] = note.strip()
    return wanted
