"""Value by turn: computed from a group's screens, kept at its end, and shown wherever a trajectory is."""

import hashlib

import pytest
from django.contrib.auth.models import User
from django.test import Client

from testing.factories import make_experiment, make_group, make_team, make_trajectory, make_user
from webapp.accounts.models import Role, Team
from webapp.scanners.transcripts import read_transcripts
from webapp.trajectories.filters import TrajectoryFilter
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.queries.turn_credit import Stretch, credit_of, mistake_of
from webapp.trajectories.services.group_places import note_mistakes

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team()


@pytest.fixture
def operator(client: Client, team: Team) -> User:
    user = make_user(Role.OPERATOR, team=team)
    client.force_login(user)
    return user


def sha(screen: str) -> str:
    return hashlib.sha256(screen.encode()).hexdigest()


def member(group: Group, reward: float, screens: list[str]) -> Trajectory:
    made = make_trajectory(group=group, reward=reward, turns=len(screens))
    for index, screen in enumerate(screens):
        made.turns.filter(index=index).update(frame=sha(screen))
    return made


@pytest.fixture
def group(team: Team) -> Group:
    """All open the menu; the last two choose the wrong row in their second turn."""
    made = make_group(experiment=make_experiment(team=team), size=4)
    for number, reward in enumerate((1.0, 1.0, 0.0, 0.0)):
        member(made, reward, ["desk", "menu", "right" if number < 2 else "wrong"])
    return made


def last_of(group: Group) -> Trajectory:
    return group.trajectories.order_by("id").last()


def test_the_turn_that_lost_is_named_with_its_interval(group: Group) -> None:
    first, second, third = credit_of(group)[last_of(group).pk]
    assert (first.change, second.change, third.change) == (0, -0.5, 0)
    assert [one.is_mistake for one in (first, second, third)] == [False, True, False]
    assert (second.num_before, second.num_after) == (4, 2)
    assert second.low < -0.5 < second.high
    assert second.words == f"Turn 2 lost 0.50 [{-second.high:.2f}, {-second.low:.2f}]"
    assert mistake_of(credit_of(group)[group.trajectories.order_by("id")[0].pk]) is None


def test_without_a_shared_screen_no_turn_is_called_a_mistake(team: Team) -> None:
    group = make_group(experiment=make_experiment(team=team))
    member(group, 1.0, ["desk", "a", "b"])
    lost = member(group, 0.0, ["desk", "c", "d"])
    (only,) = credit_of(group)[lost.pk]
    assert (only.turns, only.change, only.is_mistake) == ("Turns 1–3", -0.5, False)


def test_behind_a_dialog_that_any_key_closes_the_right_key_takes_no_blame(team: Team) -> None:
    group = make_group(experiment=make_experiment(team=team), size=8)
    rows = [member(group, float(number < 4), ["desk", "menu", "desk behind"]) for number in range(8)]
    for number, row in enumerate(rows):
        row.turns.filter(index=1).update(
            action={"kind": "key", "keys": ["Return" if number < 4 else "Escape"]}
        )
    found = credit_of(group)
    assert [one.change for one in found[rows[0].pk]] == [0, 0.5, 0]
    assert [one.change for one in found[rows[7].pk]] == [0, -0.5, 0]
    assert [mistake_of(found[row.pk]) for row in rows] == [None] * 4 + [1] * 4


def test_near_clicks_share_the_state_behind_unless_the_tree_says_that_they_hit_other_rows(team: Team) -> None:
    group = make_group(experiment=make_experiment(team=team), size=8)
    rows = [member(group, float(number < 4), ["desk", "menu", "desk behind"]) for number in range(8)]
    for number, row in enumerate(rows):
        y = 118 - number if number < 4 else 128 + number
        row.turns.filter(index=1).update(action={"kind": "click", "x": 50, "y": y})
    assert [one.change for one in credit_of(group)[rows[0].pk]] == [0, 0.5, 0]
    rows[3].turns.filter(index=1).update(measured={"widgets": "of another row"})
    assert [one.change for one in credit_of(group)[rows[3].pk]] == [0, 0.5]
    assert [one.change for one in credit_of(group)[rows[0].pk]] == [0, 0.5, 0]


def test_what_chance_explains_is_no_mistake(team: Team) -> None:
    group = make_group(experiment=make_experiment(team=team), size=4)
    lost = member(group, 0.0, ["desk", "menu", "left"])
    for reward in (1.0, 0.0, 1.0):
        member(group, reward, ["desk", "menu", "right"])
    _, second = credit_of(group)[lost.pk]
    assert second.change == -0.5
    assert second.high > 0
    assert not second.is_mistake


def test_trees_decide_where_the_policy_reads_no_screen(group: Group) -> None:
    experiment = group.experiment
    experiment.config = experiment.config | {"prompt": {"observation": ["accessibility"]}}
    experiment.save()
    for trajectory in group.trajectories.all():
        trajectory.turns.update(accessibility=sha("one tree"))
    fresh = Group.objects.get(pk=group.pk)
    assert [one.change for one in credit_of(fresh)[last_of(fresh).pk]] == [0, 0, -0.5]


def test_people_who_took_over_count_in_no_value(group: Group) -> None:
    lost = last_of(group)
    taken = member(group, 1.0, ["desk", "menu", "wrong"])
    Trajectory.objects.filter(pk=taken.pk).update(source="human")
    assert taken.pk not in credit_of(group)
    assert [one.change for one in credit_of(group)[lost.pk]] == [0, -0.5, 0]


def test_a_member_without_a_turn_counts_in_the_start_as_it_does_in_training(group: Group) -> None:
    none = member(group, 0.0, [])
    note_mistakes(group)
    found = credit_of(group)
    assert found[none.pk] == []
    first, second, _ = found[group.trajectories.order_by("id")[0].pk]
    assert (first.num_before, first.change, second.change) == (5, pytest.approx(0.1), 0.5)


def test_the_mistake_is_kept_for_lists_and_scanners(group: Group) -> None:
    note_mistakes(group)
    assert list(group.trajectories.order_by("id").values_list("mistake_turn", flat=True)) == [
        None,
        None,
        1,
        1,
    ]
    found = TrajectoryFilter(problem="mistake").apply(Trajectory.objects.filter(group=group))
    assert found.count() == 2
    (paid,) = read_transcripts([last_of(group).pk])
    assert paid.mistake_turn == 1


def test_pages_say_which_turn_lost(client: Client, operator, group: Group) -> None:
    note_mistakes(group)
    lost = last_of(group)
    page = client.get(f"/trajectories/{lost.pk}/").content.decode()
    assert "Value by turn" in page
    assert "Turn 2 lost 0.50" in page
    assert "is-mistake" in page
    assert "Turn 2 lost 0.50" in client.get(f"/groups/{group.pk}/").content.decode()
    assert "Turn 2 lost 0.50" in client.get(f"/trajectories/{lost.pk}/summary/").json()["reward"]
    assert "lost here" in client.get(f"/replay/turns/{lost.pk}/").content.decode()


@pytest.mark.parametrize(
    ("change", "low", "high", "words"),
    [
        (0.6, 0.4, 0.8, "Turns 7–8 won 0.60 [0.40, 0.80]"),
        (-0.6, -0.8, -0.4, "Turns 7–8 lost 0.60 [0.40, 0.80]"),
        (-0.1, -0.3, 0.2, "Turns 7–8 lost 0.10 [-0.20, 0.30]"),
        (0.0, -0.3, 0.2, "Turns 7–8 changed nothing [-0.30, 0.20]"),
    ],
)
def test_bounds_count_in_the_direction_of_the_change(
    change: float, low: float, high: float, words: str
) -> None:
    assert (
        Stretch(first=6, last=7, change=change, low=low, high=high, num_before=8, num_after=8).words == words
    )
