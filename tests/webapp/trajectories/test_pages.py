"""The trajectory list, the viewer and the group page over HTTP."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from testing.factories import make_experiment, make_group, make_team, make_trajectory, make_turn, make_user
from testing.page_text import page_text
from training.contracts.types import Limit, Observation, Source
from webapp.trajectories.models import Group, Trajectory, TurnRecord
from webapp.trajectories.queries.group_lanes import neighbour_groups
from webapp.trajectories.services import turns

pytestmark = pytest.mark.django_db


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def web(team):
    client = Client()
    client.force_login(make_user(team=team))
    return client


def listed(response):
    return [trajectory.pk for trajectory in response.context["page"].rows]


def test_the_list_is_narrowed_and_sorted_by_what_stands_in_the_url(web, team):
    experiment = make_experiment(team=team)
    group = make_group(experiment=experiment, size=4)
    good = make_trajectory(group=group, reward=1.0)
    bad = make_trajectory(group=group, reward=0.0, num_parse_errors=2)
    errored = make_trajectory(group=group, status="errored", reward=None)
    running = make_trajectory(team=team, status="running", reward=None, source="oracle")
    make_trajectory()  # another team's
    assert listed(web.get("/trajectories/")) == [running.pk, errored.pk, bad.pk, good.pk]
    assert listed(web.get("/trajectories/?status=active")) == [running.pk]
    assert listed(web.get("/trajectories/?success=yes")) == [good.pk]
    assert listed(web.get("/trajectories/?success=no")) == [bad.pk]
    assert listed(web.get("/trajectories/?problem=parse")) == [bad.pk]
    assert listed(web.get("/trajectories/?problem=errored")) == [errored.pk]
    assert listed(web.get("/trajectories/?source=oracle")) == [running.pk]
    assert listed(web.get(f"/trajectories/?experiment={experiment.pk}&sort=reward-low")) == [
        bad.pk,
        good.pk,
        errored.pk,
    ]
    assert listed(web.get("/trajectories/?sort=reward"))[:2] == [good.pk, bad.pk]


def test_broken_filters_show_everything(web, team):
    trajectory = make_trajectory(team=team)
    path = "/trajectories/?status=sleeping&experiment=%F0%9D%9F%99&success=maybe&sort=weight"
    assert listed(web.get(path)) == [trajectory.pk]


def test_a_list_shows_what_it_is_narrowed_to_when_that_is_no_choice(web, team, monkeypatch):
    monkeypatch.setattr("webapp.trajectories.views.NUM_EXPERIMENT_CHOICES", 1)
    old, new = (make_experiment(team=team, name=name) for name in ("The old run", "The new run"))
    other = make_experiment(name="Another team's run")
    page = page_text(web.get(f"/trajectories/?experiment={old.pk}&family=gone"))
    assert f'<option value="{old.pk}" selected>The old run</option>' in page
    assert f'<option value="{new.pk}">The new run</option>' in page
    assert "<option selected>gone</option>" in page
    page = page_text(web.get(f"/trajectories/?experiment={other.pk}"))
    assert f"<option selected>{other.pk}</option>" in page
    assert "Another team" not in page


def test_the_list_reads_no_turns_and_at_most_eight_queries(web, team, django_assert_max_num_queries):
    for _ in range(12):
        make_trajectory(team=team, turns=3)
    with django_assert_max_num_queries(8) as queries:
        web.get("/trajectories/?status=terminated")
    assert not any("turnrecord" in query["sql"] for query in queries)


def test_the_viewer_holds_every_turn_with_its_action_and_reward(web, team):
    trajectory = make_trajectory(
        team=team, turns=3, terms=[{"name": "task_score.v1", "value": 1, "weight": 1, "contribution": 1.0}]
    )
    make_turn(trajectory, 3, action=None, parse_error="no JSON found", completion={"text": "hm"})
    response = web.get(f"/trajectories/{trajectory.pk}/")
    page = page_text(response)
    assert [turn["index"] for turn in response.context["player"]["turns"]] == [0, 1, 2, 3]
    assert [turn["state"] for turn in response.context["player"]["turns"]][-1] == "parse-error"
    assert page.count("data-card=") == 5  # three, and two more: before the first turn, after the last
    for part in ("no JSON found", "Click 50, 50", "task_score", "thought 2"):
        assert part in page


def test_the_cursor_of_a_running_trajectory_covers_exactly_what_the_page_shows(web, team):
    trajectory = make_trajectory(team=team, turns=0, status="running", reward=None)
    seen = Observation(sha256="a" * 64, width=512, height=384)
    turns.open_turn(
        trajectory_id=trajectory.pk,
        index=0,
        source=Source.POLICY,
        observation=seen,
        observed_at=trajectory.created_at,
    )
    response = web.get(f"/trajectories/{trajectory.pk}/")
    assert response.context["cursor"] == 1
    assert len(response.context["player"]["turns"]) == 1


def test_turns_are_drawn_again_with_the_same_parts_as_on_first_load(web, team):
    trajectory = make_trajectory(team=team, turns=2)
    page = page_text(web.get(f"/trajectories/{trajectory.pk}/"))
    answer = web.get(f"/trajectories/{trajectory.pk}/turns/?indexes=1").json()["turns"]
    assert [item["turn"]["index"] for item in answer] == [1]
    assert " ".join(answer[0]["card"].split()) in page
    assert " ".join(answer[0]["cell"].split()) in page
    assert web.get(f"/trajectories/{trajectory.pk}/turns/?indexes=1,x").status_code == 400


def test_the_lane_shows_siblings_retries_and_where_they_part(web, team):
    group = make_group(team=team, size=2)
    watched = make_trajectory(group=group, turns=3, member=0)
    other = make_trajectory(group=group, turns=3, member=1)
    TurnRecord.objects.filter(trajectory=other, index=1).update(action={"kind": "key", "keys": ["Tab"]})
    lost = make_trajectory(group=group, member=1, status="errored", reward=None, error_kind="worker_lost")
    Trajectory.objects.filter(pk=other.pk).update(tries=1, retry_of=lost)
    response = web.get(f"/trajectories/{watched.pk}/")
    rows = {row.trajectory.pk: row for row in response.context["lane"].rows}
    assert list(rows) == [watched.pk, lost.pk, other.pk]
    assert rows[other.pk].divergence == 1
    assert rows[watched.pk].divergence is None
    page = page_text(response)
    assert "Errored: worker_lost, not scored" in page
    assert "Try 2" in page


def test_a_click_a_few_pixels_apart_is_no_divergence(web, team):
    group = make_group(team=team, size=2)
    first, second = (make_trajectory(group=group, turns=0, member=member) for member in range(2))
    make_turn(first, 0, action={"kind": "click", "x": 100, "y": 100})
    make_turn(second, 0, action={"kind": "click", "x": 104, "y": 102})
    lane = web.get(f"/trajectories/{first.pk}/").context["lane"]
    assert [row.divergence for row in lane.rows] == [None, None]


def test_lanes_mark_where_other_weights_began_to_act(web, team):
    member = make_trajectory(group=make_group(team=team), turns=0, num_turns=4)
    for index, versions in enumerate(([3], [3, 3, 4], [4], [4])):
        make_turn(member, index, completion={"policy_version": versions[0], "policy_versions": versions})
    for address in (f"/trajectories/{member.pk}/", f"/groups/{member.group_id}/"):
        page = web.get(address).content.decode()
        assert re.findall(r'<i class="lane-weights">(.*?)</i>', page) == ["v3", "v3–4", "v4"]


def test_the_viewer_of_a_big_group_needs_few_queries(web, team, django_assert_max_num_queries):
    group = make_group(team=team, size=8)
    members = [make_trajectory(group=group, turns=4, member=member) for member in range(8)]
    with django_assert_max_num_queries(16):
        assert web.get(f"/trajectories/{members[0].pk}/").status_code == 200


def test_the_groups_beside_are_of_the_same_experiment(team, django_assert_num_queries):
    run, other = make_experiment(team=team), make_experiment(team=team)
    groups = [make_group(experiment=each, size=2) for each in (run, run, other, run, other)]
    second = make_trajectory(group=groups[0], member=1)
    first = make_trajectory(group=groups[0], member=0)
    beside = make_trajectory(group=groups[3], member=0)
    for strange in (groups[2], groups[4]):
        make_trajectory(group=strange)
    assert second.pk < first.pk
    with django_assert_num_queries(1):
        assert neighbour_groups(groups[1]) == (first.pk, beside.pk)
    assert neighbour_groups(groups[0]) == (None, None)  # the one after it has no member


def test_an_errored_trajectory_says_what_failed_and_has_no_reward(web, team):
    trajectory = make_trajectory(
        team=team, status="errored", reward=None, error="Xvnc exited with 139", error_kind="desktop_lost"
    )
    page = page_text(web.get(f"/trajectories/{trajectory.pk}/"))
    assert "Xvnc exited with 139" in page
    assert "It has no reward and left its group." in page


@pytest.mark.parametrize(
    ("scores", "words"),
    [((1.0, 1.0), "all 2 solved it"), ((0.0, 0.0), "none of 2 solved it"), ((0.0, 1.0), "rewarded alike")],
)
def test_a_group_without_variance_says_what_its_members_have_in_common(web, team, scores, words):
    group = make_group(team=team, size=2, num_scored=2, reward_mean=0.5, reward_std=0.0)
    Group.objects.filter(pk=group.pk).update(finished_at=timezone.now())
    for member, score in enumerate(scores):
        make_trajectory(group=group, member=member, score=score, reward=0.5)
    response = web.get(f"/groups/{group.pk}/")
    page = page_text(response)
    assert "no variance" in page
    assert words in page
    assert b"is-best" not in response.content


def test_the_group_page_stands_members_side_by_side(web, team):
    group = make_group(team=team, size=3)
    for member, reward in enumerate((1.0, 0.0, 0.5)):
        make_trajectory(group=group, member=member, reward=reward, advantage=reward - 0.5)
    response = web.get(f"/groups/{group.pk}/")
    page = page_text(response)
    for part in ("Member 1", "Member 3", "+1.00", "−0.50"):
        assert part in page
    assert response.content.count(b"is-best") == 1


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (Limit.TASK_TURNS, "6 turns, the task&#x27;s own"),
        (Limit.TURNS, "8 turns"),
        (Limit.TOKENS, "2048 tokens"),
        (Limit.TIME, " s</dd>"),
    ],
)
def test_a_truncated_trajectory_names_its_limit(web, team, limit: Limit, words: str):
    experiment = make_experiment(team=team)
    trajectory = make_trajectory(experiment=experiment, status="truncated", reward=0.0, limit=limit)
    task = trajectory.task
    task.spec = {**task.spec, "max_turns": 6}
    task.save()
    page = page_text(web.get(f"/trajectories/{trajectory.pk}/"))
    assert words in page


def test_a_member_that_a_person_took_over_is_marked_and_counted_apart(web, team):
    group = make_group(team=team, size=2, num_final=2)
    watched = make_trajectory(group=group, member=0)
    human = make_trajectory(group=group, member=1, source=Source.HUMAN)
    make_trajectory(group=group, member=1, retry_of=human)
    page = page_text(web.get(f"/trajectories/{watched.pk}/"))
    assert "2 of 2 finished · 1 human takeover" in page
    assert page.count(">Human</span>") == 1
    assert "Human </span>" in page_text(web.get(f"/groups/{group.pk}/"))
