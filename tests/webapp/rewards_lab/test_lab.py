"""The reward lab over a recorded database: own rewards come out exactly, and what a preset would change."""

import random
import re

import pytest

from testing.factories import (
    make_experiment,
    make_group,
    make_replay_entry,
    make_task,
    make_team,
    make_trajectory,
    make_turn,
)
from training.contracts.config import RewardConfig, RewardPreset, parse_config
from training.contracts.config.reward_presets import REWARD_PRESETS, WeightedTerm
from training.contracts.types import ActionKind
from training.rewards import compute_reward
from training.rewards.term import facts_of
from training.statistics.agreement import rank_correlation
from webapp.experiments.models import SavedRewardPreset
from webapp.lib.request_values import BadValue
from webapp.rewards_lab.effects import effects_of
from webapp.rewards_lab.slices import load_slice, own_parity, reward_slice, rows_of
from webapp.trajectories.models import Trajectory
from webapp.trajectories.row_to_types import trajectory_of, turn_limit

pytestmark = pytest.mark.django_db

MOVED = WeightedTerm(term="moved", weight=0.3, expression="changed && kind != 'wait'", count="mean")
OWN = RewardPreset(
    terms=(
        WeightedTerm(term="task_score.v1", weight=1.0),
        MOVED,
        WeightedTerm(term="way", weight=0.2, expression="milestone_share + num_milestones", count="once"),
        WeightedTerm(term="steps", weight=0.1, expression="milestones", count="mean"),
        WeightedTerm(term="short", weight=0.1, expression="num_turns / max_turns", count="once", high=0.5),
    ),
    high=1.2,
)
EDITOR = {
    "slice": "buffer-all",
    "term": ["task_score.v1", "moved"],
    "weight": ["1", "0.5"],
    "partial": ["one", "one"],
    "expression": ["", "changed"],
    "count": ["mean", "mean"],
    "term_low": ["", ""],
    "term_high": ["", ""],
}


def random_turns(trajectory: Trajectory, dice: random.Random) -> None:
    """Turns of every kind; the last row is a screenshot alone when the context was full."""
    number = dice.randrange(9)
    for index in range(number):
        kind = dice.choice([None, *ActionKind])
        parts = {"text": "a", "keys": ["ctrl"]}
        action = kind and {"kind": kind.value, "x": dice.randrange(3), "y": 5, **parts}
        if kind is ActionKind.TERMINATE:
            action = {"kind": "terminate", "status": dice.choice(["success", "failure"])}
        make_turn(
            trajectory,
            index,
            action=action,
            parse_error="" if kind else "no action",
            action_error=dice.choice(["", "", "off screen"]) if kind else "",
            screen_changed=dice.choice([None, True, False]),
        )
    if dice.random() < 0.3:
        make_turn(trajectory, number, action=None, completion=None)


def recorded(rewards: RewardConfig, number: int, dice: random.Random):
    """An experiment whose trajectories were rewarded as env workers do it."""
    config = parse_config({"rewards": rewards.model_dump(mode="json"), "desktops": {"max_turns": 7}})
    experiment = make_experiment(config=config.model_dump(mode="json"))
    task = make_task()
    task.spec["milestones"] = [{"name": name, "evaluator": {}} for name in ("a", "b")]
    task.save()
    for _ in range(number):
        group = make_group(experiment=experiment, task=task)
        for _ in range(2):
            row = make_trajectory(group=group, turns=0, reward=dice.choice([0.0, 0.25, 1.0]))
            random_turns(row, dice)
            row.milestones = [{"name": "a", "turn": dice.randrange(9)}][: dice.randrange(2)]
            wire = trajectory_of(row)
            result = compute_reward(
                wire.turns,
                row.score,
                config.rewards,
                max_turns=turn_limit(row),
                milestones=wire.milestones,
                num_milestones=2,
            )
            row.reward, row.num_turns = result.reward, row.turns.count()
            row.save()
    return experiment


@pytest.mark.parametrize("preset", [*REWARD_PRESETS, "own.v1"])
def test_every_stored_reward_comes_out_of_its_own_preset_exactly(preset):
    rewards = RewardConfig(preset=preset, alpha=0.37, definition=OWN if preset == "own.v1" else None)
    experiment = recorded(rewards, 8, random.Random(preset))
    stored = load_slice(experiment.team_id, f"train-{experiment.pk}")
    parity = own_parity(stored)
    assert (parity.num_checked, parity.num_exact, parity.num_without) == (16, 16, 0)
    for each in stored.trajectories:
        row = Trajectory.objects.get(pk=each.pk)
        assert each.facts.turns == tuple(facts_of(turn) for turn in trajectory_of(row).turns)
        assert each.facts.max_turns == turn_limit(row)


def test_a_reward_that_its_preset_does_not_give_is_named():
    experiment = recorded(RewardConfig(preset="task-score.v1"), 2, random.Random(1))
    wrong = Trajectory.objects.first()
    Trajectory.objects.filter(pk=wrong.pk).update(reward=0.123)
    parity = own_parity(load_slice(experiment.team_id, f"train-{experiment.pk}"))
    assert parity.num_exact == 3
    assert parity.different == [(wrong.pk, 0.123, wrong.score)]


def pair(rewards: tuple[float, float], changed: tuple[bool, bool]) -> tuple[Trajectory, Trajectory]:
    """A group of two of one turn each."""
    group = make_group(experiment=pair.experiment)
    members = []
    for place, (reward, moved) in enumerate(zip(rewards, changed, strict=True)):
        row = make_trajectory(group=group, turns=0, reward=reward, member=place, num_turns=1)
        make_turn(row, 0, screen_changed=moved)
        members.append(row)
    return tuple(members)


@pytest.fixture
def lab_experiment():
    pair.experiment = make_experiment()
    return pair.experiment


def effects(experiment, *terms: WeightedTerm):
    stored = load_slice(experiment.team_id, f"train-{experiment.pk}")
    rewards = RewardConfig(preset="x.v1", definition=RewardPreset(terms=terms))
    return effects_of(stored, reward_slice(stored, rewards))


def test_what_another_reward_would_change_is_counted(lab_experiment):
    equal, _ = pair((0.0, 0.0), (True, False))
    turned, _ = pair((1.0, 0.0), (False, True))
    pair((1.0, 0.0), (True, True))
    score = WeightedTerm(term="task_score.v1", weight=1.0)
    farm = MOVED.model_copy(update={"weight": 3.0})
    found = effects(lab_experiment, score, farm)
    assert found.became_uneven == [equal.group_id]
    assert found.became_flat == []
    assert {pk for pk, _, _ in found.turned} == {turned.pk, turned.pk + 1}
    assert found.inverted == [turned.group_id]
    assert found.farmed[0][1] == 3.0
    assert {term.name: term.can_be_farmed for term in found.terms} == {"task_score.v1": False, "moved": True}
    nothing = effects(lab_experiment, score.model_copy(update={"weight": 0.0}))
    assert len(nothing.became_flat) == 2
    assert nothing.correlation is None


def test_what_a_limit_ended_is_neither_solved_nor_failed(lab_experiment):
    reached, failed = pair((1.0, 0.0), (True, True))
    Trajectory.objects.filter(pk=reached.pk).update(status="truncated")
    ended = WeightedTerm(term="ended_score.v1", weight=1.0)
    found = effects(lab_experiment, ended, MOVED)
    assert found.inverted == [], "none solved it, so no success is paid less than a failure"
    assert [pk for pk, _ in found.farmed] == [failed.pk]
    score = found.terms[0]
    assert (score.solved, score.at_limit, score.failed) == (None, 0.0, 0.0)
    (paid,) = effects(lab_experiment, WeightedTerm(term="task_score.v1", weight=1.0)).terms
    assert (paid.solved, paid.at_limit, paid.failed) == (None, 1.0, 0.0)


def test_rank_correlation_shares_ranks_among_ties():
    import numpy as np

    assert rank_correlation(np.array([1.0, 2, 2, 3]), np.array([0.0, 1, 1, 9])) == pytest.approx(1)
    assert rank_correlation(np.array([1.0, 2, 3]), np.array([3.0, 2, 1])) == pytest.approx(-1)
    assert rank_correlation(np.array([1.0, 1]), np.array([3.0, 2])) is None


def test_a_slice_is_the_teams_own_and_leaves_out_what_has_no_turns_any_more():
    team = make_team()
    entry = make_replay_entry(team=team)
    make_replay_entry(team=make_team())
    assert [row.pk for row in rows_of(team.pk, "buffer-all")] == [entry.trajectory_id]
    Trajectory.objects.update(pruned_at=entry.created_at)
    assert not rows_of(team.pk, "buffer-all").exists()
    with pytest.raises(BadValue, match="choose one of the list"):
        rows_of(team.pk, "everything")


def test_the_page_tries_what_is_edited_and_says_how_exact_it_is(client, operator):
    team = operator.memberships.get().team
    trajectory = make_trajectory(experiment=make_experiment(team=team))
    Trajectory.objects.filter(pk=trajectory.pk).update(reward=0.25)
    make_replay_entry(team=team, trajectory=trajectory)
    page = client.get("/rewards/").content.decode()
    assert f"<option selected>{RewardConfig().preset}</option>" in page
    answer = client.post("/rewards/try/", EDITOR | {"compare": "task-score.v1"}).content.decode()
    assert "Own presets: 0 of 1 exact" in answer  # the factory's reward is no preset's
    assert "Terms (edited)" in answer
    assert "Terms (task-score.v1)" in answer
    means = answer.partition("Mean reward</th>")[2].partition("</tr>")[0]
    assert re.findall(r"<td>(.*?)</td>", means) == ["0.250", "1.000", "1.000"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"weight": ["1", "much"]}, "weight of moved: 'much' is not a number"),
        ({"expression": ["", "speed"]}, "moved: column 1: undeclared reference to 'speed'"),
        ({"expression": ["", ""]}, "moved: unknown term"),
        ({"term": ["task_score.v1", ""]}, "an expression needs a name"),
        ({"term_low": ["", "2"], "term_high": ["", "1"]}, "low 2 is above high 1"),
        ({"slice": "train-x"}, "slice: choose one of the list"),
        ({"compare": "gone.v1"}, "there is no gone.v1"),
        ({"count": ["mean"]}, "every term needs all of its fields"),
        ({"expression": ["", "1.0 / 0.0"]}, "moved: 1.0 / 0.0 gives inf"),
    ],
)
def test_what_cannot_be_tried_is_named(client, operator, change, problem):
    make_replay_entry(team=operator.memberships.get().team)
    answer = client.post("/rewards/try/", EDITOR | change)
    assert answer.status_code == 422
    assert problem.replace("moved: 1.0", "moved: moved: 1.0") in answer.content.decode()


def test_an_empty_slice_says_so(client, operator):
    assert "Nothing to try it on" in client.post("/rewards/try/", EDITOR).content.decode()


def test_what_is_saved_is_what_was_edited(client, operator):
    client.post("/rewards/save/", EDITOR | {"name": "mine", "note": "moves"})
    client.post("/rewards/save/", EDITOR | {"name": "mine", "high": "1"})
    first, second = SavedRewardPreset.objects.order_by("version")
    assert first.rewards.terms.terms[1] == WeightedTerm(term="moved", weight=0.5, expression="changed")
    assert (first.rewards.terms.high, second.rewards.terms.high) == (None, 1.0)
    page = client.get("/rewards/", {"preset": "mine.v1"}).content.decode()
    assert 'value="changed"' in page
    assert f"/experiments/launch/?reward={first.pk}" in page
    assert "<option selected>mine.v1</option>" in page


def test_a_shipped_preset_is_saved_under_the_offered_name_and_launched_with_one_press(client, operator):
    assert 'value="first-desk-edited"' in client.get("/rewards/").content.decode()
    answer = client.post("/rewards/save/", EDITOR | {"name": "first-desk-edited", "launch": "1"})
    saved = SavedRewardPreset.objects.get()
    assert (str(saved), answer.url) == ("first-desk-edited.v1", f"/experiments/launch/?reward={saved.pk}")


def test_what_is_refused_stays_as_it_was_typed(client, operator):
    sent = EDITOR | {"name": "first-desk", "note": "moves", "weight": ["1", "lots"], "high": "1"}
    answer = client.post("/rewards/save/", sent)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "Nothing was saved: weight of moved" in page
    for text in ('value="lots"', 'value="changed"', 'value="first-desk"', 'value="moves"'):
        assert text in page
    assert client.post("/rewards/save/", EDITOR | {"name": "first-desk"}).status_code == 422
    assert not SavedRewardPreset.objects.exists()
