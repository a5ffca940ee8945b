"""Rounds of double annotation: who labels what, blind until all labels of an entry are in."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from training.contracts.number_text import counted
from webapp.accounts.models import AuditAction, Membership, Role, Team
from webapp.accounts.services.audit_log import log_action
from webapp.lib.request_values import BadValue, check_text
from webapp.replay.filters import EntryFilter
from webapp.replay.models import ReplayEntry, ReviewItem, ReviewLabel, ReviewRound, Verdict
from webapp.replay.queries.sorting import Surroundings, ordered_ids
from webapp.replay.services.labels import MAX_NOTE, label_entry, standing_events

VERDICTS = (Verdict.ACCEPTED, Verdict.GOLD, Verdict.REJECTED)
"""What a person may say."""
MAX_ITEMS = 1000
MAX_PEOPLE = 20


class AlreadyLabelled(Exception):
    """Raised when a label is given twice; the first one stands, since others may have seen it."""


def annotators_of(team: Team) -> list[User]:
    """Members who may label, by name."""
    rows = Membership.objects.filter(team=team, user__is_active=True).select_related("user")
    able = [row.user for row in rows if Role(row.role).includes(Role.ANNOTATOR)]
    return sorted(able, key=lambda user: user.get_username())


def start_round(
    *,
    team: Team,
    user: User,
    name: str,
    people: Sequence[str],
    num_labels: int,
    num_entries: int,
    num_checks: int,
    chosen: EntryFilter,
) -> ReviewRound:
    """Give the first entries of a filter, and checks, to `num_labels` of `people` (account names) each.

    Checks are gold and rejected entries, mixed in and not marked. Raises BadValue.
    """
    check_text(name, "name")
    name = name.strip()
    if not 1 <= len(name) <= 60:
        raise BadValue("name", "a review needs a name of 1 to 60 characters")
    found = _people(team, people)
    if not 2 <= num_labels <= len(found):
        chosen_people = counted(len(found), "person is chosen", "people are chosen")
        raise BadValue("num_labels", f"from 2 to the number of people who label, and {chosen_people}")
    if not 1 <= num_entries <= MAX_ITEMS or not 0 <= num_checks <= MAX_ITEMS:
        raise BadValue("num_entries", f"from 1 to {MAX_ITEMS}")
    entries = ordered_ids(team.pk, chosen, Surroundings(team.pk))[:num_entries]
    if not entries:
        raise BadValue("num_entries", "no entry fits the filter")
    checks = _checks(team, entries, num_checks)
    # A check after every few entries: where it stands must not tell.
    every = max(1, len(entries) // max(1, len(checks)))
    mixed = [(pk, "") for pk in entries]
    for place, check in enumerate(checks):
        mixed.insert(min(len(mixed), (place + 1) * every + place), check)
    with transaction.atomic():
        made = ReviewRound.objects.create(team=team, name=name, num_labels=num_labels, owner=user)
        items = ReviewItem.objects.bulk_create(
            ReviewItem(round=made, entry_id=pk, expected=expected, num_open=num_labels)
            for pk, expected in mixed
        )
        ReviewLabel.objects.bulk_create(
            ReviewLabel(item=item, person=found[(place * num_labels + offset) % len(found)])
            for place, item in enumerate(items)
            for offset in range(num_labels)
        )
    log_action(AuditAction.SAVED, person=user, team=team, kind="review", object_id=made.pk)
    return made


def _people(team: Team, names: Sequence[str]) -> list[User]:
    if len(names) > MAX_PEOPLE:
        raise BadValue("people", f"at most {MAX_PEOPLE}")
    known = {user.get_username(): user for user in annotators_of(team)}
    for name in names:
        if name not in known:
            raise BadValue("people", f"{name[:40]!r} is no annotator of this team")
    return [known[name] for name in dict.fromkeys(names)]


def _checks(team: Team, taken: Sequence[int], number: int) -> list[tuple[int, str]]:
    """(entry, its verdict) of gold and rejected ones in turn, seldom used as checks first."""
    kinds = []
    for verdict in (Verdict.GOLD, Verdict.REJECTED):
        rows = ReplayEntry.objects.filter(team=team, verdict=verdict).exclude(pk__in=taken)
        ids = rows.order_by("-labelled_at", "-id").values_list("pk", flat=True)[:number]
        kinds.append([(pk, str(verdict)) for pk in ids])
    gold, rejected = kinds
    mixed = [check for pair in zip(gold, rejected, strict=False) for check in pair]
    return [*mixed, *gold[len(rejected) :], *rejected[len(gold) :]][:number]


# --- labelling ---------------------------------------------------------------------------------------


def next_label(review: ReviewRound, user: User) -> ReviewLabel | None:
    """The user's next open label of a round; None when all of them are in."""
    rows = ReviewLabel.objects.filter(item__round=review, person=user, verdict="").order_by("item_id")
    return rows.select_related("item__entry").first()


def note_opened(label: ReviewLabel) -> None:
    """Remember when its person saw the entry first."""
    ReviewLabel.objects.filter(pk=label.pk, opened_at=None).update(opened_at=timezone.now())


def submit_label(*, label: ReviewLabel, verdict: str, note: str = "") -> ReviewItem:
    """Store one person's verdict. When it was the last one and all are equal, the entry gets it.

    Raises BadValue, or AlreadyLabelled.
    """
    check_text(note, "note")
    if verdict not in VERDICTS:
        raise BadValue("verdict", f"must be one of {', '.join(VERDICTS)}")
    if len(note) > MAX_NOTE:
        raise BadValue("note", f"at most {MAX_NOTE} characters, this has {len(note)}")
    with transaction.atomic():
        item = ReviewItem.objects.select_for_update().get(pk=label.item_id)
        now = timezone.now()
        given = ReviewLabel.objects.filter(pk=label.pk, verdict="")
        if not given.update(verdict=verdict, note=note.strip(), done_at=now):
            raise AlreadyLabelled("You have labelled this entry already; the first label stands.")
        item.num_open -= 1
        said = set(item.labels.values_list("verdict", flat=True))
        if item.num_open == 0 and len(said) == 1 and not item.expected:
            item.decided = said.pop()
            label_entry(entry=item.entry, user=label.person, verdict=item.decided, trim=True)
        item.save(update_fields=["num_open", "decided"])
    return item


def is_settled(review_id: int) -> bool:
    """All labels are in, and nothing is left to settle."""
    rows = ReviewItem.objects.filter(round=review_id)
    return not (rows.filter(num_open__gt=0) | rows.filter(num_open=0, decided="", expected="")).exists()


@transaction.atomic
def take_back_label(*, label: ReviewLabel) -> None:
    """Open a label again, and with it the verdict that it had decided. Raises AlreadyLabelled once its round,
    or a person the entry, is settled."""
    item = ReviewItem.objects.select_for_update().get(pk=label.item_id)
    if is_settled(item.round_id) or item.decided_by_id is not None:
        raise AlreadyLabelled("The review, or this entry of it, is settled: its labels stand.")
    given = ReviewLabel.objects.filter(pk=label.pk).exclude(verdict="")
    if not given.update(verdict="", note="", done_at=None):
        raise AlreadyLabelled("You have not labelled this entry.")
    if item.decided:
        _withdraw(item, label.person)
    item.num_open, item.decided = item.num_open + 1, ""
    item.save(update_fields=["num_open", "decided"])


def _withdraw(item: ReviewItem, person: User) -> None:
    """The entry is what it was before all agreed, unless it was labelled otherwise since."""
    given = standing_events().filter(entry=item.entry_id).order_by("-id").first()
    entry = ReplayEntry.objects.get(pk=item.entry_id)
    if given is not None and given.after["verdict"] == entry.verdict == item.decided:
        label_entry(entry=entry, user=person, verdict=given.before["verdict"])


def last_label(review: ReviewRound, user: User) -> ReviewLabel | None:
    """The one that the user gave last; None when it can no longer be taken back."""
    rows = ReviewLabel.objects.filter(item__round=review, person=user, item__decided_by=None)
    found = rows.exclude(verdict="").select_related("item", "person").order_by("-done_at", "-id").first()
    return None if found is None or is_settled(review.pk) else found


def decide_item(*, item: ReviewItem, user: User, verdict: str) -> None:
    """Settle a disagreement: the entry gets this verdict. A person who labelled it may, and the page says so.
    Raises BadValue."""
    if verdict not in VERDICTS:
        raise BadValue("verdict", f"must be one of {', '.join(VERDICTS)}")
    with transaction.atomic():
        locked = ReviewItem.objects.select_for_update().get(pk=item.pk)
        if locked.num_open or locked.expected:
            raise BadValue("item", "is a check, or labels of it are not in yet: no one may see them")
        locked.decided, locked.decided_by = verdict, user
        locked.save(update_fields=["decided", "decided_by"])
        label_entry(entry=locked.entry, user=user, verdict=verdict, trim=True)
