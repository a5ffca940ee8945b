"""What the viewer shows beside the screen: trees with their changes, terminals, and why there is none."""

import pytest
from django.test import Client

from testing.factories import make_team, make_trajectory, make_user
from testing.observed_texts import read_with, tree, widget
from training.observations.widget_tree import BadTree
from webapp.trajectories.models import Trajectory
from webapp.trajectories.observed_tree import MAX_ROWS, tree_change, tree_rows

SAVE = widget("push-button", "Save", (10, 20, 60, 24))
FIRST = tree(widget("frame", "Notes", (0, 0, 300, 200), SAVE + widget("text", "Body", (5, 50, 200, 90), "a")))
LATER = tree(
    widget(
        "frame",
        "Notes",
        (0, 0, 300, 200),
        widget("text", "Body", (5, 50, 200, 90), "ab") + widget("push-button", "Close", (80, 20, 60, 24)),
    )
)


def test_rows_come_in_the_documents_order_with_depth_and_box():
    rows, num_left = tree_rows(FIRST)
    assert [(row.depth, row.role, row.name, row.text) for row in rows] == [
        (0, "desktop-frame", "main", ""),
        (1, "frame", "Notes", ""),
        (2, "push-button", "Save", ""),
        (2, "text", "Body", "a"),
    ]
    assert rows[2].box == (10, 20, 60, 24)
    assert num_left == 0


def test_a_change_names_what_is_new_what_says_something_else_and_what_is_gone():
    rows, _ = tree_rows(LATER)
    change = tree_change(tree_rows(FIRST)[0], rows)
    marks = {row.name: mark for row, mark in zip(rows, change.marks, strict=True)}
    assert marks == {"main": "", "Notes": "", "Body": "changed", "Close": "added"}
    assert [row.name for row in change.removed] == ["Save"]
    again = tree_change(rows, rows)
    assert set(again.marks) == {""}
    assert again.removed == []


def test_widgets_that_look_alike_keep_their_places():
    row = widget("item", "Row", (0, 0, 9, 9))
    before, after = tree_rows(tree(row, row))[0], tree_rows(tree(row, row, row))[0]
    assert tree_change(before, after).marks == ["", "", "", "added"]


def test_a_huge_tree_is_cut_and_one_with_entities_is_refused():
    rows, num_left = tree_rows(tree(*["<a/>"] * (MAX_ROWS + 4)))
    assert (len(rows), num_left) == (MAX_ROWS, 5)
    deep = "<a>" * 4000 + "</a>" * 4000
    assert tree_rows(deep)[0][-1].depth == 3999
    evil = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'
    with pytest.raises(BadTree, match="document type"):
        tree_rows(evil)


def watched(client: Client, turns: int) -> Trajectory:
    """One of the team of whom the client signs in."""
    team = make_team()
    client.force_login(make_user(team=team))
    return make_trajectory(team=team, turns=turns)


@pytest.mark.django_db
def test_the_texts_of_a_turn_are_compared_with_the_turn_before(client: Client):
    trajectory = watched(client, turns=4)
    first, second, third, _ = trajectory.turns.order_by("index")
    read_with(first, accessibility=FIRST, terminal="$ ")
    read_with(second, accessibility=LATER, terminal="$ ls")
    third.read_texts = {"accessibility": {"sha256": "", "num_chars": 0, "error": "no answer in 3 s"}}
    third.save()
    at = [client.get(f"/trajectories/{trajectory.pk}/turns/{index}/texts/").json() for index in range(4)]
    assert (at[0]["tree"]["hasBefore"], at[0]["terminal"]["hasChanged"]) == (False, False)
    assert [row[-1] for row in at[1]["tree"]["rows"]] == ["", "", "changed", "added"]
    assert at[1]["tree"]["removed"] == [["push-button", "Save"]]
    assert at[1]["terminal"] == {"error": "", "text": "$ ls", "hasChanged": True}
    assert (at[2]["tree"]["rows"], at[2]["tree"]["error"]) == ([], "no answer in 3 s")
    assert at[3] == {"tree": None, "terminal": None}
    assert client.get(f"/trajectories/{trajectory.pk}/turns/9/texts/").status_code == 404


@pytest.mark.django_db
def test_tabs_are_there_only_where_something_was_read(client: Client):
    trajectory = watched(client, turns=2)
    address = f"/trajectories/{trajectory.pk}/"
    assert "data-side-tabs" not in client.get(address).content.decode()
    read_with(trajectory.turns.first(), accessibility=FIRST)
    assert "data-side-tabs" in client.get(address).content.decode()
