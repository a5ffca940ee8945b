"""Several people label an entry without seeing each other's labels; their agreement is measured."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from testing.factories import make_replay_entry, make_user
from testing.page_text import page_text
from training.statistics.agreement import cohens_kappa
from webapp.lib.request_values import BadValue
from webapp.replay.filters import EntryFilter
from webapp.replay.models import ReplayEntry, ReviewItem, ReviewLabel
from webapp.replay.reviews.agreement import agreement_of, disagreements
from webapp.replay.services.guides import guide_of, save_guide
from webapp.replay.services.review_rounds import (
    AlreadyLabelled,
    decide_item,
    last_label,
    next_label,
    note_opened,
    start_round,
    submit_label,
    take_back_label,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(team):
    return [make_user("annotator", team=team, name=name) for name in ("anna", "bert", "carl")]


def begin(team, people, *, num_entries=2, num_checks=0, num_labels=2):
    return start_round(
        team=team,
        user=people[0],
        name="monday",
        people=[person.username for person in people],
        num_labels=num_labels,
        num_entries=num_entries,
        num_checks=num_checks,
        chosen=EntryFilter(),
    )


def say(item, person, verdict, note=""):
    return submit_label(label=item.labels.get(person=person), verdict=verdict, note=note)


def page(user, path):
    client = Client()
    client.force_login(user)
    return client.get(path, follow=True)


def test_two_equal_labels_are_the_entrys_verdict(team, people):
    entry = make_replay_entry(team=team)
    review = begin(team, people[:2])
    item = review.items.get()
    say(item, people[0], "gold")
    entry.refresh_from_db()
    assert entry.verdict == "inbox", "one label of two decides nothing"
    say(item, people[1], "gold")
    entry.refresh_from_db()
    assert (entry.verdict, entry.labelled_by) == ("gold", people[1])
    assert disagreements(review) == []


def test_no_page_shows_a_label_before_all_are_in(team, people):
    make_replay_entry(team=team)
    review = begin(team, people[:2])
    item = review.items.get()
    say(item, people[0], "rejected", note="it only got lucky")
    for path in (f"/replay/reviews/{review.pk}/", f"/replay/reviews/{review.pk}/label/"):
        text = page_text(page(people[1], path))
        assert "it only got lucky" not in text
        assert "badge-tone-bad" not in text
    assert page(people[1], f"/replay/reviews/{review.pk}/").context["agreement"].pairs == []
    with pytest.raises(BadValue, match="not in yet"):
        decide_item(item=item, user=people[0], verdict="gold")

    say(item, people[1], "accepted")
    text = page_text(page(people[1], f"/replay/reviews/{review.pk}/"))
    assert "it only got lucky" in text


def test_a_disagreement_waits_until_a_person_settles_it(team, people):
    entry = make_replay_entry(team=team)
    review = begin(team, people[:2])
    item = review.items.get()
    say(item, people[0], "gold")
    say(item, people[1], "rejected")
    assert [one.pk for one in disagreements(review)] == [item.pk]
    assert ReplayEntry.objects.get().verdict == "inbox"
    decide_item(item=item, user=people[2], verdict="accepted")
    entry.refresh_from_db()
    assert (entry.verdict, entry.labelled_by) == ("accepted", people[2])
    assert disagreements(review) == []


def test_a_label_is_final(team, people):
    make_replay_entry(team=team)
    item = begin(team, people[:2]).items.get()
    say(item, people[0], "gold")
    with pytest.raises(AlreadyLabelled):
        say(item, people[0], "rejected")
    item.refresh_from_db()
    assert item.num_open == 1
    with pytest.raises(BadValue, match="verdict"):
        say(item, people[1], "inbox")


def test_work_is_dealt_evenly_and_no_one_gets_an_entry_twice(team, people):
    for _ in range(6):
        make_replay_entry(team=team)
    begin(team, people, num_entries=6)
    shares = [ReviewLabel.objects.filter(person=person).count() for person in people]
    assert shares == [4, 4, 4]
    assert {item.labels.count() for item in ReviewItem.objects.all()} == {2}


def test_checks_look_like_any_entry_and_keep_their_verdict(team, people):
    inbox = make_replay_entry(team=team)
    gold = make_replay_entry(team=team, verdict="gold")
    rejected = make_replay_entry(team=team, verdict="rejected")
    review = begin(team, people[:2], num_checks=2)
    assert {item.entry_id: item.expected for item in review.items.all()} == {
        inbox.pk: "",
        gold.pk: "gold",
        rejected.pk: "rejected",
    }
    for item in review.items.all():
        say(item, people[0], "accepted")
        say(item, people[1], "rejected" if item.expected == "rejected" else "gold")
    found = {person.name: person for person in agreement_of(review).people}
    assert [(found[name].num_passed, found[name].num_checks) for name in ("anna", "bert")] == [(1, 2), (2, 2)]
    assert ReplayEntry.objects.get(pk=rejected.pk).verdict == "rejected"
    assert [item.entry_id for item in disagreements(review)] == [inbox.pk]
    for name in ("gold", "rejected"):
        text = page_text(page(people[0], f"/replay/reviews/{review.pk}/"))
        assert f"expected {name}" not in text


def test_kappa_is_that_of_the_textbook():
    # Cohen (1960) as in every textbook: 20 and 15 of 50 agree, marginals 25/25 and 30/20.
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohens_kappa(pairs) == pytest.approx(0.4)
    assert cohens_kappa([("y", "n"), ("n", "y")]) == pytest.approx(-1.0)
    assert cohens_kappa([("y", "y")] * 4) is None
    assert cohens_kappa([]) is None


def test_a_pair_counts_by_its_entries_in_the_kappa_of_a_round(team, people):
    anna, bert, carl = people
    for _ in range(6):
        make_replay_entry(team=team)
    review = begin(team, [anna, bert], num_entries=6)
    *with_bert, last, very_last = review.items.all()
    ReviewLabel.objects.filter(item__in=[last, very_last], person=bert).update(person=carl)
    for item, pair in zip(with_bert, ("gg", "gr", "rr", "rr"), strict=True):
        for person, letter in zip((anna, bert), pair, strict=True):
            say(item, person, {"g": "gold", "r": "rejected"}[letter])
    for item, verdict in ((last, "gold"), (very_last, "rejected")):
        say(item, anna, verdict)
        say(item, carl, verdict)
    found = agreement_of(review)
    shown = [(pair.one, pair.other, pair.num, pair.agreement, pair.kappa) for pair in found.pairs]
    assert shown == [("anna", "bert", 4, 0.75, 0.5), ("anna", "carl", 2, 1.0, 1.0)]
    assert found.kappa == pytest.approx((0.5 * 4 + 1.0 * 2) / 6)


def test_speed_is_the_median_and_pauses_do_not_count(team, people):
    for _ in range(3):
        make_replay_entry(team=team)
    review = begin(team, people[:2], num_entries=3)
    for seconds in (10, 20, 7200):
        label = next_label(review, people[0])
        assert next_label(review, people[0]).opened_at is None, "to look which is next writes nothing"
        note_opened(label)
        first = next_label(review, people[0]).opened_at
        note_opened(label)
        assert next_label(review, people[0]).opened_at == first, "seen first, not last"
        submit_label(label=label, verdict="gold")
        now = timezone.now()
        ReviewLabel.objects.filter(pk=label.pk).update(
            opened_at=now - timedelta(seconds=seconds), done_at=now
        )
    assert next_label(review, people[0]) is None
    (anna, bert) = agreement_of(review).people
    assert (anna.num_done, anna.num_open, anna.median_s) == (3, 0, 15.0)
    assert (bert.num_done, bert.num_open, bert.agreement) == (0, 3, None)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"people": ["anna"]}, "num_labels"),
        ({"people": ["anna", "zoe"]}, "people"),
        ({"num_labels": 1}, "num_labels"),
        ({"num_entries": 0}, "num_entries"),
        ({"name": " "}, "name"),
    ],
)
def test_a_round_that_cannot_be_is_refused_by_its_field(team, people, change, problem):
    make_replay_entry(team=team)
    values = {"name": "x", "people": ["anna", "bert"], "num_labels": 2, "num_entries": 1, "num_checks": 0}
    with pytest.raises(BadValue, match=problem):
        start_round(team=team, user=people[0], chosen=EntryFilter(), **(values | change))
    assert not ReviewItem.objects.exists()


def test_only_ones_own_label_can_be_given(team, people):
    make_replay_entry(team=team)
    review = begin(team, people[:2])
    other = ReviewLabel.objects.get(person=people[1])
    client = Client()
    client.force_login(people[0])
    answer = client.post(f"/replay/reviews/{review.pk}/label/", {"label": other.pk, "verdict": "gold"})
    assert answer.status_code == 404
    assert not ReviewLabel.objects.exclude(verdict="").exists()


def test_guidelines_stand_beside_the_entry_in_their_newest_version(team, people):
    entry = make_replay_entry(team=team)
    task_set = entry.trajectory.task.task_set
    for text in ("first words", "A detour is no <b>gold</b>."):
        save_guide(team=team, user=people[0], task_set=task_set.name, text=text)
    review = begin(team, people[:2])
    text = page_text(page(people[0], f"/replay/reviews/{review.pk}/label/"))
    assert "A detour is no &lt;b&gt;gold" in text
    assert re.search(r"Version\s+2", text)
    save_guide(team=team, user=people[0], task_set=task_set.name, text="")
    assert guide_of(team.pk, task_set.pk) is None
    with pytest.raises(BadValue, match="task_set"):
        save_guide(team=team, user=people[0], task_set="none", text="x")


def test_a_label_can_be_taken_back_until_the_round_is_settled(team, people):
    """Two entries: the first is decided by agreement, and opens again while the second is not labelled."""
    first, _ = make_replay_entry(team=team), make_replay_entry(team=team)
    review = begin(team, people[:2])
    item = review.items.get(entry=first)
    say(item, people[0], "gold")
    say(item, people[1], "gold", note="sure")
    first.refresh_from_db()
    assert first.verdict == "gold"
    assert last_label(review, people[1]).item == item
    client = Client()
    client.force_login(people[1])
    at = f"/replay/reviews/{review.pk}/"
    assert "Take back the last one: gold" in page_text(client.get(f"{at}label/"))
    answer = client.post(f"{at}undo/", {"label": last_label(review, people[1]).pk})
    assert answer.url == f"{at}label/"
    first.refresh_from_db()
    item.refresh_from_db()
    assert (first.verdict, item.num_open, item.decided) == ("inbox", 1, "")
    assert item.labels.get(person=people[0]).verdict == "gold", "the other's label stands"

    say(item, people[1], "rejected")
    other = review.items.exclude(pk=item.pk).get()
    for person in people[:2]:
        say(other, person, "gold")
    decide_item(item=item, user=people[2], verdict="gold")
    assert last_label(review, people[1]) is None
    with pytest.raises(AlreadyLabelled, match="settled"):
        take_back_label(label=item.labels.get(person=people[1]))


def test_who_settles_ones_own_conflict_is_named(team, people):
    for _ in range(2):
        make_replay_entry(team=team)
    review = begin(team, people[:2])
    for item in review.items.all():
        say(item, people[0], "gold")
        say(item, people[1], "rejected")
    at = f"/replay/reviews/{review.pk}/"
    assert page_text(page(people[0], at)).count("data-party") == 2
    assert "data-party" not in page_text(page(people[2], at))
    party, neutral = review.items.order_by("id")
    decide_item(item=party, user=people[0], verdict="gold")
    decide_item(item=neutral, user=people[2], verdict="gold")
    rows = re.findall(r"<tr data-settled.*?</tr>", page_text(page(people[2], at)), re.S)
    assert ["labelled it, too" in row for row in rows] == [False, True]


def test_the_form_of_a_round_keeps_what_was_typed_and_names_the_field(team, people):
    make_replay_entry(team=team)
    client = Client()
    client.force_login(people[0])
    typed = {
        "name": "monday",
        "num_entries": "7",
        "num_labels": "3",
        "num_checks": "4",
        "verdict": "accepted",
        "people": ["anna", "bert"],
    }
    answer = client.post("/replay/reviews/start/", typed)
    assert answer.status_code == 400
    shown = page_text(answer)
    problem = (
        "<b>People for each entry</b>: from 2 to the number of people who label, and 2 people are chosen"
    )
    assert problem in shown
    for part in ('value="monday"', 'value="7"', 'value="3" aria-invalid="true"', 'value="4"'):
        assert part in shown
    assert len(re.findall(r'name="people" value="(anna|bert)" checked', shown)) == 2
    assert '<option value="accepted" selected>' in shown
    unchosen = page_text(client.post("/replay/reviews/start/", typed | {"people": []}))
    assert "<b>People for each entry</b>" in unchosen
    assert "and 0 people are chosen" in unchosen


def test_bulk_labels_leave_out_what_a_review_holds_to_settle(team, people):
    held = make_replay_entry(team=team)
    review = begin(team, people[:2])
    free = make_replay_entry(team=team)
    for person, verdict in ((people[0], "gold"), (people[1], "rejected")):
        say(review.items.get(entry=held), person, verdict)
    client = Client()
    client.force_login(people[2])
    answer = client.post("/replay/bulk/?verdict=inbox", {"verdict": "accepted", "expected": "2"}, follow=True)
    assert "1 entry marked accepted" in page_text(answer)
    assert "Left out: 1 entry that a review holds to settle" in page_text(answer)
    held.refresh_from_db()
    free.refresh_from_db()
    assert (held.verdict, free.verdict) == ("inbox", "accepted")
    body = {"verdict": "inbox", "expected": 1, "to": "rejected"}
    answer = client.post("/api/v1/replay/bulk", body, content_type="application/json").json()
    assert answer == {"changed": 0, "held_back": 0, "left_out": 1}
