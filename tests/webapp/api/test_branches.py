"""Branches over the API: asked for, listed with their lineage, refused with the field, exported."""

import json

import pytest

from testing.factories import make_replay_entry
from tests.webapp.api.test_rest_api import api, team  # noqa: F401 (fixtures)
from tests.webapp.trajectories.test_branching import (  # noqa: F401
    branch,
    keep,
    make_trajectory,
    qemu_experiment,
    sent,
    worker,
)
from webapp.replay.formats.slime_export import export_record

pytestmark = pytest.mark.django_db


@pytest.fixture
def parent(team, worker):  # noqa: F811
    trajectory = make_trajectory(experiment=qemu_experiment(team=team), turns=4)
    keep(trajectory, 1, 2)
    return trajectory


def test_a_branch_is_asked_for_and_its_lineage_is_in_every_answer(api, parent):  # noqa: F811
    answer = api.post(f"/trajectories/{parent.pk}/branches", {"turn": 2, "size": 2, "temperature": 0.8})
    assert answer.status_code == 201
    made = answer.json()
    assert (made["parent_id"], made["branch_turn"], len(made["trajectory_ids"])) == (parent.pk, 2, 2)
    rows = {row["id"]: row for row in api.get("/trajectories").json()["items"]}
    for pk in made["trajectory_ids"]:
        assert (rows[pk]["parent_id"], rows[pk]["branch_turn"], rows[pk]["purpose"]) == (
            parent.pk,
            2,
            "branch",
        )
    assert (rows[parent.pk]["parent_id"], rows[parent.pk]["branch_turn"]) == (None, None)
    detail = api.get(f"/trajectories/{made['trajectory_ids'][0]}").json()
    assert detail["row"]["parent_id"] == parent.pk
    assert len(detail["trajectory"]["turns"]) == 2
    tree = api.get(f"/trajectories/{made['trajectory_ids'][1]}/tree").json()
    assert [(node["trajectory_id"], node["parent_id"], node["branch_turn"]) for node in tree] == [
        (parent.pk, None, 0),
        *((pk, parent.pk, 2) for pk in made["trajectory_ids"]),
    ]


def test_what_is_kept_is_listed_for_a_branch_with_its_parents(api, parent):  # noqa: F811
    child = branch(parent, 2, 4)
    keep(child, 3)
    found = api.get(f"/trajectories/{child.pk}/snapshots").json()
    assert [(row["turn"], row["trajectory_id"], row["status"]) for row in found] == [
        (1, parent.pk, "kept"),
        (2, parent.pk, "kept"),
        (3, child.pk, "kept"),
    ]


def test_a_refusal_names_the_field(api, parent):  # noqa: F811
    answer = api.post(f"/trajectories/{parent.pk}/branches", {"turn": 2, "size": 99})
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert error["code"] == "branch_refused"
    assert "1 to 16" in error["fields"]["size"]
    answer = api.post(f"/trajectories/{parent.pk}/branches", {"turn": -2})
    assert answer.status_code == 422


def test_an_export_says_whose_turns_the_first_ones_are(api, parent):  # noqa: F811
    entry = make_replay_entry(trajectory=branch(parent, 2, 4))
    exported = export_record(entry, "sha256")["metadata"]["deskhand"]
    assert exported["branch"] == {"parent_trajectory": parent.pk, "turn": 2}
    assert len(exported["turns"]) == 4
    plain = export_record(make_replay_entry(trajectory=parent), "sha256")["metadata"]["deskhand"]
    assert plain["branch"] is None
    assert json.dumps(exported)
