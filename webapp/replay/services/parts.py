"""One entry becomes two at a turn: the turns before it, and those from it on.

Both keep the trajectory: what was seen before the second part is its context, and ratings of turns hold for
both. The undo of the split deletes the second part again.
"""

from django.contrib.auth.models import User
from django.db import transaction

from webapp.accounts.models import AuditAction
from webapp.accounts.services.audit_log import log_action
from webapp.lib.request_values import BadValue
from webapp.replay.automatic_checks import longest_still_run
from webapp.replay.models import LabelEvent, ReplayEntry
from webapp.replay.services.labels import LIKENESS_COLUMNS, follow_edit, snapshot
from webapp.replay.turn_edits import TurnEdit


def split_entry(*, entry: ReplayEntry, user: User, at: int) -> ReplayEntry:
    """Split off the turns from index `at` on, with verdict, tags and note; returns their entry.

    Raises BadValue unless turns of the entry lie on both sides.
    """
    with transaction.atomic():
        locked = ReplayEntry.objects.select_for_update().get(pk=entry.pk)
        edit = TurnEdit.read(locked.edit)
        turns = locked.trajectory.turns.order_by("index").only(
            *("trajectory", "index", "frame", "parse_error", "action_error")
        )
        own = [turn for turn in turns if edit.state_of(turn.index) == "trained"]
        behind = [turn for turn in own if turn.index >= at]
        if not 0 < len(behind) < len(own):
            raise BadValue("turn", f"entry {locked.pk} has no turns on both sides of turn {at + 1}")
        if other := ReplayEntry.objects.filter(trajectory=locked.trajectory_id, part=at).first():
            raise BadValue("turn", f"entry {other.pk} begins at turn {at + 1} already")
        first, second = edit.split(at)
        part = ReplayEntry.objects.create(
            team_id=locked.team_id,
            trajectory_id=locked.trajectory_id,
            part=at,
            family=locked.family,
            verdict=locked.verdict,
            tags=locked.tags,
            note=locked.note,
            edit=second.as_json(),
            labelled_by_id=locked.labelled_by_id,
            labelled_at=locked.labelled_at,
            signature=locked.signature,
            num_still=longest_still_run(behind),
            has_bad_turns=bool(second.bad_turns(behind)),
        )
        label = snapshot(locked)
        after = {**label, "edit": first.as_json(), "part": part.pk}
        LabelEvent.objects.create(entry=locked, by=user, before=label, after=after)
        locked.edit = first.as_json()
        follow_edit(locked)
        locked.save(update_fields=["edit", *LIKENESS_COLUMNS])
        team, pk = locked.team_id, locked.pk
        log_action(AuditAction.LABELLED, person=user, team=team, kind="entry", object_id=pk, split=at + 1)
    entry.edit = locked.edit
    return part
