"""Labels of replay entries: verdict, tags, note and edit, with undo.

A label is an event: it holds what was before and after, and an undo is one more event that restores the
`before` of the one it undoes. The entry's columns are the latest `after`. Every change locks its entry, so
of two people who answer the same question one wins and the other sees who was first.
"""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action
from webapp.lib.request_values import shortened
from webapp.lib.tags import checked_tags
from webapp.replay.automatic_checks import signature_of
from webapp.replay.models import USABLE_VERDICTS, LabelEvent, ReplayEntry, ReviewItem, Verdict
from webapp.replay.turn_edits import TurnEdit
from webapp.trajectories.models import TurnRecord

MAX_NOTE = 4000


class LabelConflict(Exception):
    """Raised when another person changed the entry first; `entry` is as it is now."""

    def __init__(self, entry: ReplayEntry, message: str) -> None:
        super().__init__(message)
        self.entry = entry


class NeedsTrim(LabelConflict):
    """Raised when an entry with unparsable or refused turns would be accepted as it is."""


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
    trim: bool = False,
) -> LabelEvent | None:
    """Change verdict, tags, note or edit (None leaves one as it is); None when nothing differs.

    `edit`: of `turns.turn_edits`, checked. `expected_verdict` is what the person saw. `trim`: an entry with
    unparsable or refused turns is accepted without them. Raises LabelConflict when the entry has another
    verdict by now, NeedsTrim when it has such turns and `trim` is not set, ValueError naming the field for a
    value that cannot be stored.
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
        if verdict in USABLE_VERDICTS:
            after["edit"] = accepted_edit(locked, after["edit"], trim=trim)
        if after == before:
            return None
        event = LabelEvent.objects.create(entry=locked, by=user, before=before, after=after)
        assign(locked, after, user)
        if after["edit"] != before["edit"]:
            follow_edit(locked)
        locked.save(update_fields=[*LABEL_COLUMNS, *LIKENESS_COLUMNS])
        record_label(AuditAction.LABELLED, locked, user, before=before["verdict"], after=after["verdict"])
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
        record_label(AuditAction.LABEL_UNDONE, locked, user, verdict=locked.verdict)
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
            record_label(AuditAction.LABEL_UNDONE, last.entry, user, entries=len(undone))
        return undone


def to_settle() -> QuerySet[ReviewItem, Any]:
    """Entries that people of a review see differently, and that no one has settled."""
    return ReviewItem.objects.filter(num_open=0, decided="", expected="").values("entry")


def record_label(action: AuditAction, entry: ReplayEntry, user: User, **detail: object) -> None:
    """One row, for many entries too: then it names one of them and how many they were."""
    log_action(action, person=user, team=entry.team_id, kind="entry", object_id=entry.pk, **detail)


TURN_COLUMNS = ("trajectory", "index", "action", "earlier_actions", "parse_error", "action_error")
LIKENESS_COLUMNS = ["signature", "cluster", "has_bad_turns"]
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
    assign(entry, event.before, user)
    if event.before.get("edit") != event.after.get("edit"):
        follow_edit(entry)
    # The labeller is the person whose label stands again, not the one who undid the next.
    standing = standing_events().filter(entry=entry).order_by("-id").first()
    if standing is not None and entry.verdict != Verdict.INBOX:
        entry.labelled_by_id, entry.labelled_at = standing.by_id, standing.at
    entry.save(update_fields=[*LABEL_COLUMNS, *LIKENESS_COLUMNS])
    return undo


def assign(entry: ReplayEntry, after: dict[str, Any], user: User) -> ReplayEntry:
    """Give the entry the values of a label. Saves nothing."""
    entry.verdict, entry.tags, entry.note = after["verdict"], after["tags"], after["note"]
    entry.edit = after.get("edit", {})
    is_back_in_inbox = entry.verdict == Verdict.INBOX
    entry.labelled_by = None if is_back_in_inbox else user
    entry.labelled_at = None if is_back_in_inbox else timezone.now()
    return entry


def turns_of(entry: ReplayEntry) -> list[TurnRecord]:
    """What an edit looks at."""
    return list(entry.trajectory.turns.order_by("index").only(*TURN_COLUMNS))


def accepted_edit(entry: ReplayEntry, stored: dict[str, Any], *, trim: bool) -> dict[str, Any]:
    """The edit with which an entry may be accepted. Raises NeedsTrim, or BadValue with nothing left."""
    edit, turns = TurnEdit.read(stored), turns_of(entry) if entry.has_bad_turns or stored else []
    if not edit.bad_turns(turns):
        return stored
    trimmed = edit.trimmed(turns)
    if not trim:
        last = (trimmed.last or 0) + 1
        raise NeedsTrim(
            entry,
            f"Entry {entry.pk} has unparsable or refused turns: accept it trimmed (trim), up to turn {last}.",
        )
    return trimmed.as_json()


def follow_edit(entry: ReplayEntry) -> None:
    """Its turns are others now: another signature, and the dispatcher compares it anew. Saves nothing."""
    edit, turns = TurnEdit.read(entry.edit), turns_of(entry)
    kept = [turn for turn in turns if edit.state_of(turn.index) != "cut"]
    entry.signature, entry.cluster = signature_of(entry.trajectory.task_id, kept), None
    entry.has_bad_turns = bool(edit.bad_turns(turns))


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
