"""The task library: what a task is, how it went, and what is wrong with it."""

import pytest
from django.test import Client

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_task_set,
    make_team,
    make_trajectory,
    make_user,
)
from webapp.accounts.models import Role
from webapp.experiments.models import TaskRecord
from webapp.tasks_library.flags import MIN_TRIES, Tries, flags_of, flaky_screens, tries_by_source, tries_of
from webapp.tasks_library.leakage import leaked
from webapp.tasks_library.solve_rates import MAX_BARS, courses_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def viewer(client: Client):
    user = make_user(Role.VIEWER)
    client.force_login(user)
    return user


@pytest.fixture
def team(viewer):
    return viewer.memberships.get().team


def tried(task: TaskRecord, team, scores, *, step: int = 1, purpose: str = "train", **values):
    experiment = values.pop("experiment", None) or make_experiment(team=team)
    group = make_group(experiment=experiment, task=task, purpose=purpose)
    rows = [make_trajectory(group=group, reward=score, step=step, turns=1, **values) for score in scores]
    return experiment, rows


def names(task: TaskRecord, team) -> list[str]:
    pk = [task.pk]
    tries = tries_of(team.pk, pk).get(task.pk, Tries())
    leaks = leaked(task.task_set).get(task.pk, [])
    return [flag.name for flag in flags_of(task, tries, flaky_screens(team.pk, pk).get(task.pk, []), leaks)]


def copy_of(task: TaskRecord, split: str, **changes) -> TaskRecord:
    other = make_task(task_set=task.task_set, split=split)
    other.spec = task.spec | {"task_id": other.task_id, "split": split} | changes
    other.instruction = other.spec["instruction"]
    other.save()
    return other


def test_a_held_out_task_that_is_also_practised_is_leaked(team):
    task = make_task()
    twin = copy_of(task, "heldout", instruction=task.instruction.upper() + " ")
    copy_of(task, "heldout", config=[{"type": "sleep", "parameters": {"seconds": 1}}])
    copy_of(task, "train")
    assert list(leaked(task.task_set)) == [twin.pk]
    assert names(twin, team) == ["Leaked"]
    assert names(task, team) == []


def test_one_final_screen_with_two_scores_is_flaky(team):
    task, steady = make_task(), make_task()
    tried(task, team, [1.0, 0.0], final_frame="a" * 64)
    tried(steady, team, [1.0, 1.0], final_frame="a" * 64)
    tried(steady, team, [0.0], final_frame="b" * 64)
    assert names(task, team) == ["Flaky"]
    assert names(steady, team) == []
    assert names(task, make_team()) == []


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.0] * MIN_TRIES, ["Never solved"]),
        ([1.0] * MIN_TRIES, ["Always solved"]),
        ([0.0] * (MIN_TRIES - 1), []),
        ([0.0] * MIN_TRIES + [1.0], []),
    ],
)
def test_a_task_without_a_signal_is_flagged_after_enough_tries(team, scores, expected):
    task = make_task()
    tried(task, team, scores)
    tried(task, team, [1.0, 0.0], source="oracle")
    assert names(task, team) == expected


def test_what_a_limit_ended_is_not_solved_and_shows_that_the_task_can_be(client, team):
    task = make_task(task_set=make_task_set("menus"))
    tried(task, team, [1.0] * MIN_TRIES, status="truncated")
    assert names(task, team) == []
    tried(task, team, [1.0, 1.0])
    assert tries_of(team.pk, [task.pk])[task.pk] == Tries(MIN_TRIES + 2, 2, MIN_TRIES)
    for path in ("/tasks/menus/", f"/tasks/menus/{task.pk}/"):
        page = client.get(path).content.decode()
        assert "20 %" in page
        assert f"{MIN_TRIES} more at a limit" in page
    tried(task, team, [1.0, 0.0], source="oracle", status="truncated")
    oracle = tries_by_source(team.pk, [task.pk])["oracle"][task.pk]
    flags = flags_of(task, Tries(), [], [], oracle=oracle)
    assert [flag.name for flag in flags] == ["Flaky oracle"], "an oracle is judged by the state"


def test_an_oracle_that_fails_and_a_free_score_are_flagged(team):
    task = make_task()
    task.oracle_score, task.idle_score = 0.5, 1.0
    assert names(task, team) == ["Oracle fails", "Free"]


def test_the_course_has_every_try_and_not_too_many_bars(team):
    task = make_task()
    experiment, _ = tried(task, team, [0.0, 1.0], step=1)
    for step in range(2, MAX_BARS + 4):
        tried(task, team, [1.0], step=step, experiment=experiment)
    tried(task, team, [0.0], purpose="evaluation", experiment=experiment)
    train, evaluation = courses_of(task, team.pk)
    assert (train.num, evaluation.num, evaluation.mean) == (MAX_BARS + 4, 1, 0.0)
    assert len(train.bars) <= MAX_BARS
    assert (train.bars[0].first, train.bars[-1].last) == (1, MAX_BARS + 3)
    assert sum(bar.num for bar in train.bars) == train.num
    assert train.mean == pytest.approx((train.num - 1) / train.num)


def test_the_pages_say_what_a_task_is_and_how_it_went(client, team):
    task = make_task(task_set=make_task_set("menus"))
    _, (solved, failed) = tried(task, team, [1.0, 0.0])
    idle = make_trajectory(
        team=team, group=failed.group, reward=0.0, purpose="verification", source="scripted"
    )
    make_replay_entry(trajectory=solved, verdict="gold")
    assert 'href="/tasks/menus/"' in client.get("/tasks/").content.decode()
    page = client.get("/tasks/menus/").content.decode()
    assert task.instruction in page
    assert "50 %" in page
    page = client.get(f"/tasks/menus/{task.pk}/").content.decode()
    assert "exact_match" in page
    assert "1 accepted or gold entry" in page
    assert f"/trajectories/{failed.pk}/" in page.partition("Last failures")[2]
    assert f"/trajectories/{idle.pk}/" not in page.partition("Last failures")[2], "doing nothing is to fail"
    assert "The screen at the start" in page


def test_filters_narrow_the_set_and_its_leaks(client, team):
    task = make_task(task_set=make_task_set("menus"))
    twin = copy_of(task, "heldout")
    other = make_task(task_set=task.task_set, family="note")
    page = client.get("/tasks/menus/?family=note").content.decode()
    assert other.task_id in page
    assert task.task_id not in page
    page = client.get("/tasks/menus/?leaked=1").content.decode()
    assert twin.task_id in page
    assert task.task_id + "<" not in page
    assert "No task matches" in client.get("/tasks/menus/?words=zebra").content.decode()


def test_pages_of_tasks_cost_no_query_more_for_more_tasks(client, team, django_assert_max_num_queries):
    task_set = make_task_set("menus")
    for _ in range(12):
        tried(make_task(task_set=task_set), team, [1.0, 0.0])
    task = task_set.tasks.first()
    client.get("/tasks/")
    # With those of session and membership.
    for path, limit in (("/tasks/", 10), ("/tasks/menus/", 10), (f"/tasks/menus/{task.pk}/", 18)):
        with django_assert_max_num_queries(limit):
            assert client.get(path).status_code == 200
