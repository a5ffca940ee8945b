"""Two trajectories of one task, from the first turn at which they part."""

from typing import Any

import pytest
from django.test import Client

from testing.evaluation_rows import make_evaluation, make_task_trajectories
from testing.factories import make_experiment, make_task, make_team, make_user
from testing.page_text import page_text
from webapp.accounts.models import Role
from webapp.trajectories.alignment import act_alike, align
from webapp.trajectories.models import TurnRecord

CLICK = {"kind": "click", "x": 100, "y": 80, "keys": []}


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (CLICK, True),
        ({**CLICK, "x": 111, "y": 69}, True),
        ({"kind": "click", "x": 100, "y": 80, "status": None}, True),
        ({**CLICK, "x": 113}, False),
        ({**CLICK, "x": None, "y": None}, False),
        ({**CLICK, "kind": "right_click"}, False),
        ({**CLICK, "keys": ["ctrl"]}, False),
        (None, False),
    ],
)
def test_clicks_on_about_the_same_place_are_alike(other: dict[str, Any] | None, alike: bool):
    assert act_alike(CLICK, other) is act_alike(other, CLICK) is alike
    assert act_alike(None, None)


def turns(*texts: str) -> list[TurnRecord]:
    return [
        TurnRecord(index=index, action={"kind": "type", "text": text}) for index, text in enumerate(texts)
    ]


def test_members_part_at_the_first_turn_that_any_of_them_takes_otherwise():
    found = align([turns("a", "b", "c"), turns("a", "b", "c"), turns("a", "x", "c")])
    assert (found.divergence, found.num_shared, found.num_turns) == (1, 1, 3)
    assert [row.index for row in found.shared(9)] == [0]
    assert [row.index for row in found.parted(9)] == [1, 2]
    assert [row.index for row in found.parted(1, first=1)] == [2]
    assert align([turns("a", "b"), turns("a", "b")]).divergence is None
    assert align([turns("a", "b"), turns("a")]).divergence == 1, "one that ended has parted"
    assert align([]).shared(9) == align([]).parted(9) == []


def test_members_that_act_alike_share_a_number():
    (row,) = align([turns("a"), turns("b"), turns("a"), [], turns("c")]).parted(9)
    assert row.deeds == (0, 1, 0, None, 2)


@pytest.fixture
def compared(db: None, client: Client) -> Any:
    """One task that was solved before and not after; the second sample of after did solve it."""
    team = make_team()
    client.force_login(make_user(Role.VIEWER, team=team))
    experiment, task = make_experiment(team=team), make_task()
    right = make_task_trajectories(experiment, task, [1.0], texts=["open", "save"])
    wrong = make_task_trajectories(experiment, task, [1.0, 0.0], texts=["open", "close"])
    before = make_evaluation(experiment, name="before", tasks={task.task_id: right})
    after = make_evaluation(experiment, name="after", tasks={task.task_id: wrong})
    return team, before, after, task


def show(client: Client, compared: Any, query: str = "") -> Any:
    _, before, after, task = compared
    return client.get(f"/experiments/tasks/c/{before.pk}/{after.pk}/{task.pk}/{query}")


def test_the_page_opens_with_two_that_ended_differently_at_their_divergence(client: Client, compared: Any):
    response = show(client, compared)
    left, right = (side.shown for side in response.context["sides"])
    assert (left.score, right.score, right.member) == (1.0, 0.0, 1)
    assert response.context["divergence"] == 1
    page = page_text(response)
    assert 'First divergence: <a href="#divergence">turn 2</a>; the 1 turn before is alike' in page
    assert page.index("Type “save”") > page.index('id="divergence"') > page.index("Type “open”")


def test_two_runs_open_at_the_first_task_whose_result_changed(client: Client, compared: Any):
    team, _, after, task = compared
    other = make_experiment(team=team)
    solved = make_task_trajectories(other, task, [1.0], texts=["open", "save"])
    newest = make_evaluation(other, name="after", tasks={task.task_id: solved})
    pair = f"/experiments/tasks/?id={after.experiment_id}&id={other.pk}&open=first"
    answer = client.get(pair)
    assert answer.headers["Location"] == f"/experiments/tasks/c/{after.pk}/{newest.pk}/{task.pk}/"
    alike = client.get(f"/experiments/tasks/?id={other.pk}&id={other.pk}&open=first")
    assert alike.status_code == 200, "nothing changed: the table says so"


def test_another_sample_can_be_chosen(client: Client, compared: Any):
    first = show(client, compared).context["sides"][1].members[0]
    response = show(client, compared, f"?right={first.pk}&left=none")
    assert response.context["sides"][1].shown == first


def test_an_evaluation_of_another_team_is_not_found(client: Client, compared: Any):
    team, before, _, task = compared
    other = make_evaluation(make_experiment())
    assert client.get(f"/experiments/tasks/c/{before.pk}/{other.pk}/{task.pk}/").status_code == 404


def test_trajectories_that_are_gone_are_said_to_be_so(client: Client, compared: Any):
    _, before, after, task = compared
    after.tasks.delete()
    assert "Its trajectory of this task is not here" in page_text(show(client, compared))


def test_few_queries(client: Client, compared: Any, django_assert_max_num_queries: Any):
    with django_assert_max_num_queries(10):
        show(client, compared)


def test_a_group_shows_its_turns_from_where_its_members_part(client: Client, db: None):
    team = make_team()
    client.force_login(make_user(Role.VIEWER, team=team))
    experiment, task = make_experiment(team=team), make_task()
    _, _, pk = make_task_trajectories(experiment, task, [1.0, 0.0, 0.0], texts=["open", "save"])
    last = experiment.trajectories.get(member=2)
    last.turns.filter(index=1).update(action={"kind": "type", "text": "close"})
    page = page_text(client.get(f"/groups/{pk}/"))
    assert "First divergence: turn 2" in page
    assert "1 identical turn" in page
    assert '<b>A</b> Type “save” <span class="sub">× 2</span>' in page
    assert "<b>B</b> Type “close”" in page
