"""Rewards are pure, versioned, and add up."""

import pytest

from training import rewards
from training.contracts.config import RewardConfig
from training.contracts.config.reward_presets import REWARD_PRESETS
from training.contracts.types import Action, Observation, Task, Trajectory, Turn
from training.rewards import Reward, rescore
from training.rewards.term import ScoredTrajectory, facts_of
from training.rewards.terms import TABLES, TERMS

CLICK = Action(kind="click", x=10, y=10)
OTHER_CLICK = Action(kind="click", x=90, y=10)
TYPE = Action(kind="type", text="fox")
WAIT = Action(kind="wait", seconds=1)
DONE = Action(kind="terminate", status="success")
FAIL = Action(kind="terminate", status="failure")
TASK_SCORE = RewardConfig(preset="task-score.v1")


def turn(action: Action | None, *, refused: bool = False, changed: bool = True) -> Turn:
    return Turn(
        index=0,
        observation=Observation(sha256="", width=512, height=384),
        action=action,
        parse_error=None if action else "no action",
        action_error="off screen" if refused else None,
        screen_changed=changed,
    )


def compute_reward(turns, score, preset, *, alpha=0.3, max_turns=8) -> Reward:
    return rewards.compute_reward(turns, score, RewardConfig(preset=preset, alpha=alpha), max_turns=max_turns)


def terms_of(turns, score=0.0, preset="slime-osworld.v1", **settings) -> dict[str, float]:
    result = compute_reward(turns, score, preset, **settings)
    return {term.name: term.value for term in result.terms}


EPISODES = {
    "nothing": [],
    "one good turn": [turn(DONE)],
    "solved": [turn(CLICK), turn(TYPE), turn(DONE)],
    "only gibberish": [turn(None, changed=False)] * 8,
    "stuck": [turn(CLICK, changed=False)] * 8,
    "waiting": [turn(WAIT, changed=False)] * 5,
    "refused": [turn(CLICK, refused=True), turn(None), turn(DONE)],
    "very long": [turn(CLICK), turn(OTHER_CLICK)] * 40,
    "unknown change": [turn(CLICK).model_copy(update={"screen_changed": None})],
}


@pytest.mark.parametrize("preset", REWARD_PRESETS)
@pytest.mark.parametrize("score", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("name", EPISODES)
def test_contributions_add_up_to_the_reward(name, score, preset):
    result = compute_reward(EPISODES[name], score, preset)
    assert result.reward == pytest.approx(sum(term.contribution for term in result.terms))
    for term in result.terms:
        assert term.contribution == pytest.approx(term.weight * term.value)


@pytest.mark.parametrize("preset", REWARD_PRESETS)
@pytest.mark.parametrize("name", EPISODES)
def test_turn_terms_add_up_to_their_term(name, preset):
    result = compute_reward(EPISODES[name], 1.0, preset)
    assert len(result.turn_terms) == len(EPISODES[name])
    by_turn = {term.name for terms in result.turn_terms for term in terms}
    for term in result.terms:
        if term.name in by_turn:
            shares = [t.contribution for terms in result.turn_terms for t in terms if t.name == term.name]
            assert sum(shares) == pytest.approx(term.contribution)


@pytest.mark.parametrize("preset", REWARD_PRESETS)
@pytest.mark.parametrize("name", EPISODES)
def test_the_same_episode_always_has_the_same_reward(name, preset):
    assert compute_reward(EPISODES[name], 0.5, preset) == compute_reward(EPISODES[name], 0.5, preset)


@pytest.mark.parametrize("preset", REWARD_PRESETS)
@pytest.mark.parametrize("failed", EPISODES)
def test_a_success_is_worth_more_than_any_failure(preset, failed):
    success = compute_reward(EPISODES["solved"], 1.0, preset).reward
    assert success > compute_reward(EPISODES[failed], 0.0, preset).reward


@pytest.mark.parametrize("preset", ["first-desk.v2", "slime-osworld-ended.v1", "windows-keyboard.v2"])
def test_a_score_that_a_limit_cut_off_is_worth_no_more_than_none(preset):
    """The group of `first-desk.v1` that taught to babble: right click, then no action until the limit."""
    babbles = [turn(CLICK), *[turn(None, changed=False)] * 7]
    cut, failed = (compute_reward(babbles, score, preset) for score in (1.0, 0.0))
    ended = compute_reward([turn(CLICK), turn(DONE)], 1.0, preset)
    gave_up = compute_reward([turn(CLICK), turn(DONE)], 0.0, preset)
    assert cut.reward == failed.reward < gave_up.reward < ended.reward
    assert (
        next(term for term in cut.terms if term.name == "ended_score.v1").note == "the agent did not end it"
    )


@pytest.mark.parametrize("name", EPISODES)
def test_a_score_that_the_agent_ended_counts_as_before(name):
    turns = [*EPISODES[name], turn(FAIL)]
    for now, before in (("first-desk.v2", "first-desk.v1"), ("slime-osworld-ended.v1", "slime-osworld.v1")):
        assert compute_reward(turns, 1.0, now).reward == compute_reward(turns, 1.0, before).reward


def test_task_score_is_the_score_alone():
    for name in EPISODES:
        assert compute_reward(EPISODES[name], 0.25, "task-score.v1").reward == 0.25


@pytest.mark.parametrize(
    ("name", "score", "reward"),
    [
        ("solved", 1.0, 1.0 + 0.1 - 0.05 * 3 / 8),
        ("solved", 0.0, 0.1),
        ("one good turn", 0.0, 0.1),
        ("only gibberish", 0.0, -0.1),
        ("refused", 0.0, 0.1 * 2 / 3 - 0.1 * 2 / 3),
        ("nothing", 0.0, 0.0),
    ],
)
def test_first_desk_pays_the_score_and_a_little_for_clean_turns(name, score, reward):
    assert compute_reward(EPISODES[name], score, "first-desk.v1").reward == pytest.approx(reward)


def test_first_desk_failures_gain_nothing_by_giving_up_early():
    short, long = [turn(DONE)], [turn(CLICK)] * 7 + [turn(DONE)]
    assert (
        compute_reward(short, 0.0, "first-desk.v1").reward
        == compute_reward(long, 0.0, "first-desk.v1").reward
    )


@pytest.mark.parametrize(
    ("turns", "term", "value"),
    [
        ([turn(CLICK), turn(None)], "action_parse_valid.v1", 0.5),
        ([turn(CLICK), turn(CLICK, refused=True), turn(None)], "action_executed.v1", 1 / 3),
        ([turn(CLICK), turn(TYPE), turn(DONE)], "tool_calling.v1", 0.4 + 0.4 + 0.2),
        ([turn(CLICK)], "tool_calling.v1", 0.4 / 3 + 0.4 / 2 + 0.2 / 2),
        ([turn(CLICK)] * 8, "tool_calling.v1", 0.4 / 3 + 0.4 * 5 / 8 + 0.2 / 2),
        ([turn(CLICK)] * 40, "tool_calling.v1", 0.4 / 3 + 0.4 * 0.5 + 0.2 / 2),
        ([turn(None)] * 3, "tool_calling.v1", 0.4),
        ([turn(CLICK)] * 2, "efficiency.v1", 0.75),
        ([turn(CLICK)] * 9, "efficiency.v1", 0.0),
        ([], "efficiency.v1", 1.0),
        ([turn(CLICK), turn(CLICK, changed=False)], "screen_change.v1", 0.5),
        ([turn(CLICK), turn(CLICK)], "repetition_penalty.v1", 0.2),
        ([turn(CLICK), turn(OTHER_CLICK)], "repetition_penalty.v1", 0.0),
        ([turn(TYPE), turn(TYPE)], "repetition_penalty.v1", 0.2),
        ([turn(CLICK)] * 20, "repetition_penalty.v1", 0.30),
        ([turn(CLICK)], "repetition_penalty.v1", 0.0),
        ([turn(CLICK), turn(None), turn(TYPE)], "invalid_penalty.v1", 0.1),
        ([turn(None)] * 4, "invalid_penalty.v1", 0.15),
        ([turn(None)], "invalid_penalty.v1", 0.0),
        ([turn(WAIT), turn(CLICK)], "wait_penalty.v1", 0.15),
        ([turn(WAIT)] * 4, "wait_penalty.v1", 0.3),
        ([turn(CLICK)], "fallback_penalty.v1", 0.0),
        ([turn(CLICK)], "a11y_grounding.v1", 0.0),
        ([turn(CLICK)], "a11y_change.v1", 0.0),
        ([turn(CLICK)], "terminal_change.v1", 0.0),
    ],
)
def test_slime_osworld_counts_each_term_as_published(turns, term, value):
    assert terms_of(turns)[term] == pytest.approx(value)


def test_an_ending_is_a_great_turn_although_it_changes_nothing():
    turns = [turn(CLICK, changed=False), turn(DONE, changed=False)]
    facts = tuple(facts_of(one) for one in turns)
    assert TERMS["great_turns.v1"](ScoredTrajectory(facts, 0.0, 8)).value == 0.5


def test_slime_osworld_adds_them_up_with_the_published_weights():
    turns = [turn(CLICK), turn(TYPE, changed=False), turn(None)]
    partial = 0.10 * 2 / 3 + 0.15 * 2 / 3 + 0.15 * (0.4 * 2 / 3 + 0.4 + 0.2) + 0.05 * 5 / 8 + 0.05 * 2 / 3
    result = compute_reward(turns, 0.0, "slime-osworld.v1", alpha=0.5)
    assert result.reward == pytest.approx(max(0.0, 0.5 * partial - 0.1))
    assert len(terms_of(turns)) == 13


def test_slime_osworld_stays_between_0_and_1_and_says_what_the_limit_took():
    result = compute_reward(EPISODES["solved"], 1.0, "slime-osworld.v1")
    assert result.reward == 1.0
    assert result.terms[-1].name == "limit.v1"
    assert result.terms[-1].contribution < 0
    assert compute_reward(EPISODES["only gibberish"], 0.0, "slime-osworld.v1").reward == 0.0


def test_slime_osworld_without_turns_is_the_efficiency_alone():
    assert compute_reward([], 0.0, "slime-osworld.v1", alpha=0.3).reward == pytest.approx(0.3 * 0.05)


@pytest.mark.parametrize(
    ("turns", "score", "reward"),
    [
        ([turn(TYPE), turn(DONE)], 1.0, 3 * (1 + 0.5 + 0.5)),
        ([turn(TYPE), turn(DONE)], 0.5, 3 * (0.5 + 0.2 + 0.5 + 0.5)),
        ([turn(TYPE, changed=False), turn(TYPE)], 0.0, 3 * (0.5 + 0.25)),
        ([turn(None)] * 3, 0.0, 0.0),
        ([turn(TYPE), turn(FAIL)], 0.0, 3 * (0.5 + 0.5)),
        ([], 0.0, 0.0),
    ],
)
def test_windows_keyboard_is_the_seeds_final_reward_without_the_noise(turns, score, reward):
    assert compute_reward(turns, score, "windows-keyboard.v1").reward == pytest.approx(reward)


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_score_outside_0_to_1_is_refused(score):
    with pytest.raises(ValueError, match="score must be"):
        compute_reward([], score, "task-score.v1")


def test_an_unknown_preset_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown reward preset 'mine\.v1'.*first-desk\.v1"):
        compute_reward([], 0.0, "mine.v1")


def trajectory(**values) -> Trajectory:
    base = {
        "trajectory_id": 7,
        "group_id": 1,
        "task": Task(task_id="t", instruction="", max_turns=6),
        "status": "terminated",
        "turns": tuple(EPISODES["solved"]),
        "score": 1.0,
        "reward": 1.0,
    }
    return Trajectory(**{**base, **values})


def test_a_replay_entry_is_rescored_under_another_preset():
    again = rescore(trajectory(), RewardConfig(preset="first-desk.v1"), max_turns=6)
    assert again.reward == pytest.approx(1.0 + 0.1 - 0.05 * 3 / 6)
    assert [term.name for term in again.terms][:2] == ["task_score.v1", "parsable.v1"]
    assert again.turns[0].terms
    assert rescore(again, TASK_SCORE, max_turns=6).reward == 1.0


def test_an_errored_trajectory_is_never_rescored():
    with pytest.raises(ValueError, match="trajectory 7 has no score"):
        rescore(trajectory(status="errored", score=None, reward=None), TASK_SCORE, max_turns=6)


@pytest.mark.parametrize("preset", REWARD_PRESETS)
def test_a_15_turn_trajectory_keeps_its_reward_when_it_is_replayed(preset):
    turns = tuple([turn(CLICK), turn(TYPE), turn(OTHER_CLICK)] * 4 + [turn(DONE)])
    recorded = compute_reward(turns, 1.0, preset, max_turns=15)
    entry = trajectory(task=Task(task_id="t", instruction=""), turns=turns, reward=recorded.reward)
    again = rescore(entry, RewardConfig(preset=preset), max_turns=15)
    assert (again.reward, again.terms) == (recorded.reward, recorded.terms)


@pytest.mark.parametrize(
    ("scoring", "arguments"),
    [(rewards.compute_reward, ((), 1.0, TASK_SCORE)), (rescore, (None, TASK_SCORE))],
)
def test_the_turn_limit_is_never_guessed(scoring, arguments):
    with pytest.raises(TypeError, match="max_turns"):
        scoring(*arguments)


def test_every_term_has_one_id_of_its_own_and_every_preset_uses_known_ones():
    assert len(TERMS) == sum(len(table) for table in TABLES)
    used = {row.term for preset in REWARD_PRESETS.values() for row in preset.terms}
    assert used == set(TERMS)
