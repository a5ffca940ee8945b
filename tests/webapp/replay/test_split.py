"""An entry is split at a turn: both parts keep provenance and loss masks, and an undo joins them."""

import json

import pytest

from testing.factories import make_experiment, make_group, make_replay_entry, make_trajectory, make_user
from testing.replay_imports import import_lines
from training.contracts.trainer_reports import ReplayUse
from webapp.lib.request_values import BadValue
from webapp.replay.automatic_checks import signature_of
from webapp.replay.formats.slime_export import export_line
from webapp.replay.models import ReplayEntry
from webapp.replay.queries.entries import player_entries
from webapp.replay.services.clusters import compare_waiting
from webapp.replay.services.injections import offers, record_uses
from webapp.replay.services.labels import LabelConflict, undo_last, undo_latest
from webapp.replay.services.parts import split_entry
from webapp.replay.services.process_labels import rate_turn
from webapp.trajectories.row_to_types import trajectory_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(team):
    return make_user("annotator", team=team)


@pytest.fixture
def entry(team, person):
    run = make_trajectory(group=make_group(team=team), turns=6)
    run.turns.update(width=512, height=384)
    correction = {"kind": "click", "x": 3, "y": 4}
    edit = {"first": 1, "actions": {"4": correction}}
    return make_replay_entry(
        trajectory=run,
        verdict="gold",
        labelled_by=person,
        tags=["clean"],
        edit=edit,
        signature=signature_of(run.task_id, list(run.turns.all())),
    )


def losses(entry):
    """Per turn that is sent to the trainer, whether it has a loss."""
    offer = next(one for one in offers(team=entry.team, task=entry.trajectory.task) if one.entry == entry)
    return [not turn.is_context for turn in offer.as_injected(trajectory_of(entry.trajectory)).turns]


def test_both_parts_keep_provenance_and_loss_masks(entry, person):
    rate_turn(trajectory=entry.trajectory, user=person, index=2, rating=-1)
    part = split_entry(entry=entry, user=person, at=3)
    entry.refresh_from_db()
    assert (part.trajectory, part.part, part.verdict, part.tags, part.labelled_by) == (
        entry.trajectory, 3, "gold", ["clean"], person
    )  # fmt: skip
    assert entry.edit == {"first": 1, "last": 2}
    assert part.edit == {"first": 3, "actions": {"4": {"kind": "click", "x": 3, "y": 4}}}
    assert losses(entry) == [False, True, False], "turn 1 was trimmed, turn 3 called bad"
    assert losses(part) == [False, False, False, True, True, True], "what came before is its context"
    shown = player_entries(entry.team_id, [entry.pk, part.pk])
    assert [len(one["turns"]) for one in shown] == [6, 6]


def test_the_parts_of_a_trajectory_are_not_near_identical(entry, person):
    list(compare_waiting())
    part = split_entry(entry=entry, user=person, at=3)
    entry.trajectory.turns.filter(index__gte=3).update(action={"kind": "type", "text": "fox"})
    list(compare_waiting())
    entry.refresh_from_db(), part.refresh_from_db()
    assert entry.cluster == entry.pk
    assert part.cluster == part.pk


@pytest.mark.parametrize("at", [1, 6, 99])
def test_turns_lie_on_both_sides(entry, person, at):
    with pytest.raises(BadValue, match="no turns on both sides"):
        split_entry(entry=entry, user=person, at=at)
    assert ReplayEntry.objects.count() == 1


def test_an_undo_joins_them_until_something_was_made_of_the_second(entry, person):
    before = dict(entry.edit)
    part = split_entry(entry=entry, user=person, at=3)
    third = split_entry(entry=part, user=person, at=5)
    with pytest.raises(BadValue, match="no turns on both sides"):
        split_entry(entry=entry, user=person, at=5)
    with pytest.raises(LabelConflict, match="was split off, was labelled or used"):
        undo_last(entry=entry, user=person)
    undo_latest(team=entry.team, user=person)
    assert not ReplayEntry.objects.filter(pk=third.pk).exists()
    undo_last(entry=entry, user=person)
    entry.refresh_from_db()
    assert ReplayEntry.objects.get() == entry
    assert entry.edit == before
    part = split_entry(entry=entry, user=person, at=3)
    experiment = make_experiment(team=entry.team)
    group = make_group(experiment=experiment)
    use = {
        "entry_id": part.pk,
        "group_id": group.pk,
        "step": 1,
        "policy_age": None,
        "as_likelihood": True,
        "replaced_trajectory_id": entry.trajectory_id,
        "advantage": 1.0,
        "importance_ratio": None,
    }
    record_uses(experiment=experiment, uses=[ReplayUse(**use)])
    with pytest.raises(LabelConflict):
        undo_last(entry=entry, user=person)


def test_it_is_done_on_the_page_of_turns(web, entry):
    path = f"/replay/turns/{entry.trajectory_id}/"
    split = {"turn": 3, "change": "split", "entry": entry.pk}
    answer = web.post(f"{path}edit/", split, follow=True)
    part = ReplayEntry.objects.get(part=3)
    assert [row["state"] for row in answer.context["rows"]] == ["context"] * 3 + ["trained"] * 3
    assert answer.context["entry"] == part
    web.post(f"{path}edit/", {"turn": 4, "change": "last", "entry": part.pk})
    part.refresh_from_db()
    assert part.edit["last"] == 4
    first = web.get(path)
    assert [row["state"] for row in first.context["rows"]] == ["context", *["trained"] * 2, *["cut"] * 3]
    assert f"?entry={part.pk}" in first.content.decode()
    viewer = web.get(f"/trajectories/{entry.trajectory_id}/").content.decode()
    assert "(from turn 1)" in viewer
    assert "(from turn 4)" in viewer
    assert f"entry {part.pk}" in web.get(f"/replay/{entry.pk}/").content.decode(), "its history says so"
    refused = web.post(f"{path}edit/", {"turn": 0, "change": "split", "entry": entry.pk}, follow=True)
    assert "no turns on both sides of turn 1" in refused.content.decode()


def test_parts_leave_and_come_back_each_once(entry, person, settings):
    part = split_entry(entry=entry, user=person, at=3)
    lines = [export_line(one) for one in (entry, part)]
    assert [json.loads(line)["metadata"]["deskhand"].get("part") for line in lines] == [None, 3]
    task_set, elsewhere = entry.trajectory.task.task_set, make_user("operator")
    assert import_lines(lines=lines, team=entry.team, task_set=task_set, user=person) == []
    team = elsewhere.memberships.get().team
    arrived = import_lines(lines=lines, team=team, task_set=task_set, user=elsewhere, keep_labels=True)
    assert [(one.part, one.edit.get("first"), one.edit.get("last")) for one in arrived] == [
        (0, 1, 2),
        (3, 3, None),
    ]


def test_a_part_is_not_taken_for_the_whole_that_a_team_has(entry, person):
    """Both hold the same turns: those before a part's first one are its context."""
    whole = export_line(entry)
    part = export_line(split_entry(entry=entry, user=person, at=3))
    task_set, elsewhere = entry.trajectory.task.task_set, make_user("operator")
    place = {"team": elsewhere.memberships.get().team, "task_set": task_set, "user": elsewhere}
    arrived = [[one.part for one in import_lines(lines=[line], **place)] for line in (whole, part, part)]
    assert arrived == [[0], [3], []]
