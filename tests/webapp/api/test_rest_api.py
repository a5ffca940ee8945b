"""The REST API with a token: launch, watch, steer, read; every refusal in one form."""

import json

import pytest
from django.test import Client

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_team,
    make_trajectory,
    make_user,
)
from webapp.accounts.services.tokens import create_token
from webapp.experiments.models import Experiment, MetricPoint

pytestmark = pytest.mark.django_db


class Caller:
    """A script with a token."""

    def __init__(self, token: str) -> None:
        self.client = Client(enforce_csrf_checks=True, headers={"authorization": f"Bearer {token}"})

    def get(self, path: str, **query):
        return self.client.get(f"/api/v1{path}", query)

    def post(self, path: str, body=None):
        return self.client.post(f"/api/v1{path}", json.dumps(body or {}), content_type="application/json")


@pytest.fixture
def team():
    return make_team("red")


@pytest.fixture
def api(team):
    return Caller(create_token(user=make_user("operator", team=team, name="olga"), name="script"))


def test_a_token_says_who_it_is(api):
    assert api.get("/me").json() == {"username": "olga", "teams": {"red": "operator"}}


@pytest.mark.parametrize("token", ["", "dh_wrong"])
def test_without_a_good_token_the_answer_is_401_and_not_a_redirect(token):
    response = Caller(token).get("/me")
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "unauthorized"


def test_a_revoked_or_inactive_user_is_out(api):
    from django.contrib.auth.models import User

    User.objects.filter(username="olga").update(is_active=False)
    assert api.get("/me").status_code == 401


def test_a_session_works_but_a_forged_post_does_not(team):
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user("operator", team=team))
    assert client.get("/api/v1/me").status_code == 200
    response = client.post("/api/v1/experiments", "{}", content_type="application/json")
    assert response.status_code == 403
    assert "CSRF" in response.json()["error"]["message"]


def test_launching_merges_changes_into_a_preset(api, team):
    body = {"name": "mine", "preset": "first-desk", "config": {"algorithm": {"num_steps": 3}}}
    response = api.post("/experiments", body)
    assert response.status_code == 201
    launched = response.json()
    assert (launched["status"], launched["team"], launched["preset"]) == ("queued", "red", "first-desk")
    assert launched["config"]["algorithm"]["num_steps"] == 3
    assert {stage["name"] for stage in launched["stages"]} >= {"grpo"}
    assert launched["waiting_because"]
    stored = Experiment.objects.get(pk=launched["id"])
    assert (stored.team, stored.owner.username) == (team, "olga")


def test_a_config_that_cannot_run_is_refused_by_its_fields_name(api):
    body = {"name": "x", "config": {"algorithm": {"kl_coefficient": 0.1, "groupsize": 4}}}
    response = api.post("/experiments", body)
    assert response.status_code == 422
    assert "algorithm.groupsize" in response.json()["error"]["fields"]
    assert api.post("/experiments", {"name": "x", "yaml": "- a"}).status_code == 422
    assert api.post("/experiments", {"name": "x", "preset": "none"}).status_code == 404
    assert "body.name" in api.post("/experiments", {"name": ""}).json()["error"]["fields"]
    assert not Experiment.objects.exists()


def test_preflight_queues_nothing(api):
    answer = api.post("/experiments/preflight", {"name": "x", "preset": "first-desk"}).json()
    assert {check["level"] for check in answer["checks"]} <= {"good", "warning", "bad", "info"}
    assert answer["queue_position"] == 1
    assert not Experiment.objects.exists()


def test_cancel_pause_and_resume_follow_the_transitions(api, team):
    experiment = make_experiment(team=team, status="running")
    assert api.post(f"/experiments/{experiment.pk}/pause").json()["status"] == "pausing"
    refused = api.post(f"/experiments/{experiment.pk}/resume")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")
    assert api.post(f"/experiments/{experiment.pk}/cancel").json()["status"] == "cancelling"


def test_lists_are_paged_by_a_cursor_and_hold_only_the_own_team(api, team):
    group = make_group(team=team)
    mine = [make_trajectory(group=group, turns=0).pk for _ in range(5)]
    make_trajectory(turns=0)
    found, after = [], ""
    while after is not None:
        page = api.get("/trajectories", limit=2, after=after).json()
        found += [row["id"] for row in page["items"]]
        after = page["next"]
    assert found == mine[::-1]
    assert api.get("/trajectories", after="nonsense").status_code == 400


def test_a_list_is_narrowed(api, team):
    experiment = make_experiment(team=team)
    good = make_trajectory(experiment=experiment, turns=0)
    make_trajectory(experiment=experiment, turns=0, status="errored")
    make_trajectory(team=team, turns=0)
    rows = api.get("/trajectories", experiment_id=experiment.pk, status="terminated").json()["items"]
    assert [row["id"] for row in rows] == [good.pk]
    assert api.get("/trajectories", status="nonsense").status_code == 422
    assert [row["id"] for row in api.get("/experiments", status="running").json()["items"]] == [experiment.pk]


def test_a_trajectory_comes_with_its_turns_and_tokens(api, team):
    trajectory = make_trajectory(team=team, turns=3)
    answer = api.get(f"/trajectories/{trajectory.pk}").json()
    turns = answer["trajectory"]["turns"]
    assert [turn["index"] for turn in turns] == [0, 1, 2]
    assert turns[0]["completion"]["behaviour_logprobs"] == [-0.1, -0.2, -0.3]
    assert answer["row"]["num_turns"] == 3


def test_metrics_come_as_series(api, team):
    experiment = make_experiment(team=team)
    for step in (2, 1):
        MetricPoint.objects.create(experiment=experiment, name="loss/policy", step=step, value=step / 2)
    MetricPoint.objects.create(experiment=experiment, name="other", step=1, value=0)
    answer = api.get(f"/experiments/{experiment.pk}/metrics", name="loss/policy").json()
    assert answer == {"series": {"loss/policy": {"steps": [1, 2], "values": [0.5, 1.0]}}, "next": None}


def test_a_metric_that_is_not_finite_is_null(api, team):
    experiment = make_experiment(team=team)
    MetricPoint.objects.create(experiment=experiment, name="loss/policy", step=1, value=float("inf"))
    answer = api.get(f"/experiments/{experiment.pk}/metrics")
    assert "Infinity" not in answer.content.decode()
    assert answer.json()["series"]["loss/policy"] == {"steps": [1], "values": [None]}


def test_metrics_come_in_pages_and_no_point_is_lost(api, team):
    experiment = make_experiment(team=team)
    wanted = {name: {"steps": [1, 2, 3], "values": [1.5, 2.5, 3.5]} for name in ("loss/kl", "loss/policy")}
    for step in (3, 1, 2):  # a resumed attempt repeats steps: ids do not follow them
        for name in wanted:
            MetricPoint.objects.create(experiment=experiment, name=name, step=step, value=step + 0.5)
    path, query, found, sizes = f"/experiments/{experiment.pk}/metrics", {"limit": "4"}, {}, []
    while True:
        page = api.get(path, **query).json()
        sizes.append(sum(len(series["steps"]) for series in page["series"].values()))
        for name, series in page["series"].items():
            known = found.setdefault(name, {"steps": [], "values": []})
            known["steps"] += series["steps"]
            known["values"] += series["values"]
        if page["next"] is None:
            break
        query["after"] = page["next"]
    assert found == wanted
    assert sizes == [4, 2]
    answer = api.get(path, from_step=2, to_step=3).json()
    assert answer["series"]["loss/policy"]["steps"] == [2, 3]


@pytest.mark.parametrize("cursor", ["3", "x:loss/kl", "-1:loss/kl", f"{2**31}:loss/kl"])
def test_what_is_no_cursor_of_metrics_is_refused(api, team, cursor: str):
    refused = api.get(f"/experiments/{make_experiment(team=team).pk}/metrics", after=cursor)
    assert refused.status_code == 400
    assert "after" in refused.json()["error"]["fields"]


def test_replay_entries_are_listed_by_verdict(api, team):
    make_replay_entry(team=team)
    gold = make_replay_entry(team=team, verdict="gold", tags=["short"])
    rows = api.get("/replay", verdict="gold").json()["items"]
    assert [(row["id"], row["tags"], row["labelled_by"]) for row in rows] == [(gold.pk, ["short"], None)]
    assert api.get(f"/replay/{gold.pk}").json()["trajectory_id"] == gold.trajectory_id


def test_an_entry_is_labelled_and_the_label_taken_back(api, team):
    entry = make_replay_entry(team=team)
    path = f"/replay/{entry.pk}"
    body = {"verdict": "gold", "tags": ["short"], "expected_verdict": "inbox"}
    labelled = api.post(f"{path}/label", body).json()
    assert (labelled["verdict"], labelled["tags"], labelled["labelled_by"]) == ("gold", ["short"], "olga")
    assert api.post(f"{path}/label", body).status_code == 409
    assert api.post(f"{path}/label", {"verdict": "great"}).status_code == 400
    assert api.post(f"{path}/undo").json()["verdict"] == "inbox"
    assert api.post(f"{path}/undo").status_code == 409


def test_the_schema_describes_every_knob_and_the_reference_needs_no_cdn(api, team, client):
    schema = api.get("/config/schema").json()
    assert schema["$defs"]["AlgorithmConfig"]["properties"]["group_size"]["description"]
    assert {preset["name"] for preset in api.get("/config/presets").json()} >= {"first-desk"}
    client.force_login(make_user(team=team))
    page = client.get("/api/v1/docs").content.decode()
    assert "swagger" in page
    assert "https://" not in page
    assert "/experiments/{pk}/cancel" in client.get("/api/v1/openapi.json").content.decode()


def test_a_token_reads_the_schema_and_no_one_is_sent_to_the_sign_in(api, client):
    assert api.get("/openapi.json").json()["openapi"].startswith("3.")
    refused = client.get("/api/v1/openapi.json", headers={"Authorization": "Bearer dh_unknown"})
    assert (refused.status_code, refused["Content-Type"].split(";")[0]) == (401, "application/json")
    assert client.get("/api/v1/openapi.json").json()["error"]["code"]
