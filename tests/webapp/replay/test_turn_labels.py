"""Single turns are rated, trimmed and corrected, and what training and exports get follows."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_team,
    make_trajectory,
    make_user,
)
from training.contracts.types import Action
from webapp.replay.formats.slime_export import export_record
from webapp.replay.models import LabelEvent, ProcessLabel
from webapp.replay.services.process_labels import export_lines, rate_turn
from webapp.replay.turn_edits import TurnEdit, as_trained, edit_words
from webapp.replay.turn_ratings import bad_turns
from webapp.trajectories.row_to_types import trajectory_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry(team):
    run = make_trajectory(group=make_group(team=team), turns=5)
    run.turns.update(width=512, height=384)
    return make_replay_entry(trajectory=run)


def mark(web, entry, turn, wanted):
    return web.post(f"/replay/turns/{entry.trajectory_id}/mark/", {"turn": turn, "mark": wanted})


def change(web, entry, turn, wanted, **more):
    path = f"/replay/turns/{entry.trajectory_id}/edit/"
    answer = web.post(path, {"turn": turn, "change": wanted, **more}, follow=True)
    entry.refresh_from_db()
    return answer.content.decode()


def states(web, entry):
    rows = web.get(f"/replay/turns/{entry.trajectory_id}/").context["rows"]
    return [row["state"] for row in rows]


def test_a_turn_that_more_people_call_bad_has_no_loss(web, entry, team):
    mark(web, entry, 1, "bad")
    mark(web, entry, 3, "first-wrong")
    assert states(web, entry) == ["trained", "context", "trained", "context", "trained"]
    labels = entry.trajectory.process_labels
    assert bad_turns(labels.all()) == [1, 3]
    bert = make_user("annotator", team=team)
    rate_turn(trajectory=entry.trajectory, user=bert, index=1, rating=1)
    assert bad_turns(labels.all()) == [3], "one against one is no majority"
    mark(web, entry, 3, "not-first-wrong")
    mark(web, entry, 1, "none")
    assert bad_turns(labels.all()) == []


def test_trims_and_corrections_are_labels_that_can_be_undone(web, entry):
    change(web, entry, 1, "first")
    change(web, entry, 3, "last")
    assert states(web, entry) == ["context", "trained", "trained", "trained", "cut"]
    change(web, entry, 2, "correct", action="pyautogui.click(30, 40)", cut="1")
    assert entry.edit == {
        "first": 1,
        "last": 2,
        "actions": {"2": {"kind": "click", "x": 30, "y": 40}},
    }
    assert edit_words(entry.edit) == "from turn 2, to turn 3, turn 3: Click 30, 40"
    history = web.get(f"/replay/{entry.pk}/").content.decode()
    assert "from turn 2, to turn 3, turn 3: Click 30, 40" in history
    for wanted in ({"first": 1, "last": 3}, {"first": 1}, {}):
        web.post(f"/replay/{entry.pk}/undo/")
        entry.refresh_from_db()
        assert entry.edit == wanted
    assert LabelEvent.objects.count() == 6


@pytest.mark.parametrize(
    ("turn", "wanted", "more", "problem"),
    [
        (9, "last", {}, "no turn 10"),
        (1, "correct", {"action": "click somewhere"}, "no action in a known form"),
        (1, "correct", {"action": "pyautogui.click(900, 40)"}, "off the 512x384 screen"),
        (1, "explode", {}, "must be first"),
    ],
)
def test_what_cannot_be_trained_on_is_refused_with_its_reason(web, entry, turn, wanted, more, problem):
    assert problem in change(web, entry, turn, wanted, **more)
    assert entry.edit == {}


def test_the_start_cannot_lie_behind_the_end(web, entry):
    change(web, entry, 1, "last")
    assert "behind the last one" in change(web, entry, 3, "first")
    assert entry.edit == {"last": 1}


def test_the_trainers_trajectory_has_masks_cuts_and_corrections(entry):
    right = Action(kind="click", x=1, y=2)
    trained = as_trained(trajectory_of(entry.trajectory), TurnEdit(1, 3, {2: right}), bad_turns=[3])
    assert [turn.is_context for turn in trained.turns] == [True, False, False, True]
    assert [turn.completion is None for turn in trained.turns] == [False, False, True, False]
    assert trained.turns[2].action == right


def test_an_export_holds_masks_edits_and_comes_back_with_them(web, entry, team, anna):
    mark(web, entry, 1, "bad")
    change(web, entry, 3, "last")
    change(web, entry, 2, "correct", action="pyautogui.click(30, 40)")
    record = export_record(entry, "sha256")
    masks = [m.get("step_loss_mask", 1) for m in record["messages"] if m["role"] == "assistant"]
    assert masks == [1, 0, 1, 1]
    own = record["metadata"]["deskhand"]
    assert own["edit"] == entry.edit
    assert [turn.get("is_context", False) for turn in own["turns"]] == [False, True, False, False], (
        "the cut turn is left out"
    )


# --- files of ratings --------------------------------------------------------------------------------


def upload(web, lines, origin="judge"):
    body = "\n".join(json.dumps(line) if isinstance(line, dict) else line for line in lines)
    file = SimpleUploadedFile("ratings.jsonl", body.encode())
    answer = web.post("/replay/process-labels/import/", {"file": file, "origin": origin}, follow=True)
    return answer.content.decode()


def test_ratings_come_in_from_a_file_and_go_out_again(web, entry, team):
    line = {"trajectory": entry.trajectory_id, "ratings": {"0": 1, "3": -1}, "first_wrong": 3}
    assert "Ratings of 1 trajectory stored" in upload(web, [line])
    upload(web, [line | {"ratings": {"2": -1}}])
    label = ProcessLabel.objects.get()
    assert (label.origin, label.ratings, label.first_wrong) == ("judge", {"2": -1}, 3)
    mark(web, entry, 0, "good")
    body = b"".join(web.get("/replay/process-labels/").streaming_content).decode()
    found = [json.loads(text) for text in body.splitlines()]
    assert [(one["by"], one["origin"], one["ratings"]) for one in found] == [
        ("anna", "judge", {"2": -1}),
        ("anna", "", {"0": 1}),
    ]
    assert list(export_lines(make_team())) == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "line 1: not JSON"),
        ({"trajectory": 0}, "line 1: trajectory"),
        ({"trajectory": 10**9}, "is none of this team"),
        ({"ratings": {"0": 2}}, "ratings.0: must be 1 or -1"),
        ({"ratings": {"²": 1}}, "is not the index of a turn"),
        ({"ratings": {"7": 1}}, "has no turn with index 7"),
        ({"first_wrong": -1}, "first_wrong"),
        ({"ratings": [1]}, "ratings: not an object"),
    ],
)
def test_one_wrong_line_keeps_the_whole_file_out(web, entry, line, problem):
    good = {"trajectory": entry.trajectory_id, "ratings": {"0": 1}}
    if isinstance(line, dict):
        line = {"trajectory": entry.trajectory_id, **line}
    assert problem in upload(web, [line, good]).replace("&#x27;", "'")
    assert not ProcessLabel.objects.exists()


def test_ratings_of_another_team_cannot_be_changed(web):
    stranger = make_trajectory(experiment=make_experiment())
    line = {"trajectory": stranger.pk, "ratings": {"0": 1}}
    assert "is none of this team" in upload(web, [line])
