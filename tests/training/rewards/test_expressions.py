"""Terms that people write: what they may say, what they are worth, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.contracts.config import ConfigError, RewardConfig, parse_config
from training.contracts.config.reward_presets import REWARD_PRESETS, RewardPreset, WeightedTerm
from training.contracts.milestone import Milestone, ReachedMilestone
from training.contracts.types import Action, ActionKind, Observation, Task, Trajectory, Turn
from training.rewards import compute_reward, rescore
from training.rewards.expression_fields import OF_TRAJECTORIES, OF_TURNS
from training.rewards.expressions import TermError, preset_problems


def turn(kind: str = "click", *, changed: bool = True, refused: bool = False, **values) -> Turn:
    return Turn(
        index=0,
        observation=Observation(sha256="", width=512, height=384),
        action=Action(kind=kind, **values) if kind else None,
        action_error="off screen" if refused else None,
        screen_changed=changed,
    )


TURNS = [turn(x=10, y=20), turn(x=10, y=20, changed=False), turn("type", text="fox"), turn("")]


def row(expression: str, count: str = "once", **values) -> WeightedTerm:
    return WeightedTerm(term="mine", weight=1.0, expression=expression, count=count, **values)


def rewards(*terms: WeightedTerm, **limits) -> RewardConfig:
    return RewardConfig(preset="mine.v1", definition=RewardPreset(terms=terms, **limits))


def value(expression: str, count: str = "once", turns=TURNS, **values) -> float:
    return compute_reward(turns, 0.5, rewards(row(expression, count, **values)), max_turns=8).reward


@pytest.mark.parametrize(
    ("expression", "count", "expected"),
    [
        ("score", "once", 0.5),
        ("score > 0.4 && num_turns <= 4.0", "once", 1.0),
        ("num_turns / max_turns", "once", 0.5),
        ("num_repeats + 10.0 * num_parsed + 100.0 * num_kinds", "once", 1 + 30 + 200),
        ("claim == 'success' ? 1 : 0", "once", 0.0),
        ("math.least(score, 0.25)", "once", 0.25),
        ("changed", "mean", 0.75),
        ("repeated", "sum", 1.0),
        ("kind == 'type' && text.startsWith('f')", "mean", 0.25),
        ("x", "max", 10.0),
        ("parsed ? index : 0.0", "sum", 0 + 1 + 2),
        ("is_last && !executed", "sum", 1.0),
        ("num_turns > 3 ? score + 1 : 0", "once", 1.5),
        ("claim == 'step 3' ? 1 : num_turns / 8", "once", 0.5),
        ("1 / 2", "once", 0.5),
        ("claim == 'success' ? 1 / 4 : 3 / 4", "once", 0.75),
        ("[4, 5][1]", "once", 5.0),
        ("size('ab') > 1 ? 1 : 0", "once", 1.0),
    ],
)
def test_an_expression_is_worth_what_it_says(expression, count, expected):
    assert value(expression, count) == pytest.approx(expected)


@pytest.mark.parametrize(("count", "expected"), [("mean", 0.0), ("sum", 0.0), ("max", 0.0)])
def test_without_turns_nothing_is_counted(count, expected):
    assert value("1.0", count, turns=[]) == expected


def test_the_share_of_each_turn_adds_up():
    result = compute_reward(TURNS, 0.0, rewards(row("changed", "sum")), max_turns=8)
    shares = [terms[0].contribution for terms in result.turn_terms]
    assert shares == [1.0, 0.0, 1.0, 1.0]
    best = compute_reward(TURNS, 0.0, rewards(row("index", "max")), max_turns=8)
    assert [terms[0].contribution for terms in best.turn_terms] == [0.0, 0.0, 0.0, 3.0]


def test_a_value_is_kept_within_the_terms_limits_before_it_is_weighted():
    term = WeightedTerm(term="mine", weight=-2.0, expression="num_turns", count="once", high=3.0)
    result = compute_reward(TURNS, 0.0, rewards(term), max_turns=8)
    assert result.reward == -6.0
    assert result.terms[0].note == "4, kept within None to 3.0"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("speed", "column 1: undeclared reference to 'speed'"),
        ("score +", "column 8: Syntax error"),
        ("claim", "must be a number or true/false, not string"),
        ("[1, 2].map(a, a * 2)[0]", "undeclared reference"),
        ("kind == 'click'", "undeclared reference to 'kind'"),  # a field of turns, in a term of trajectories
        ("__import__('os').system('true')", "undeclared reference to '__import__'"),
        ('claim.matches("x")', "undeclared reference to 'matches'"),  # compiled for each turn
        ("().__class__", "Syntax error"),
    ],
)
def test_what_does_not_compile_is_named(expression, problem):
    ((place, found),) = preset_problems(RewardPreset(terms=(row(expression),)))
    assert place == 0
    assert problem in found


def test_an_unknown_term_is_named():
    (found,) = preset_problems(RewardPreset(terms=(WeightedTerm(term="speed.v9", weight=1.0),)))
    assert "unknown term 'speed.v9'" in found[1]


@pytest.mark.parametrize("expression", ["1.0 / (score - 0.5)", "math.sqrt(0.0 - 1.0)", "double(claim)"])
def test_no_value_is_no_reward(expression):
    with pytest.raises(TermError, match="mine: .*no reward"):
        value(expression)


def test_milestones_are_fields_of_the_trajectory_and_of_the_turn_that_reached_them():
    reached = [ReachedMilestone(name=name, turn=turn) for name, turn in (("a", 1), ("b", 1), ("c", 3))]

    def worth(expression: str, count: str = "once"):
        found = rewards(row(expression, count))
        return compute_reward(TURNS, 0.0, found, max_turns=8, milestones=reached, num_milestones=4)

    assert worth("num_milestones").reward == 3.0
    assert worth("milestone_share").reward == 0.75
    by_turn = worth("milestones", "sum")
    assert [sum(term.contribution for term in terms) for terms in by_turn.turn_terms] == [0, 2, 0, 1]
    assert value("milestone_share + num_milestones") == 0.0, "a task without milestones"


def test_a_rescored_entry_keeps_the_milestones_that_it_reached():
    found = rewards(row("milestone_share"))
    goals = tuple(Milestone(name=name, evaluator={"func": "exact_match"}) for name in "abcd")
    entry = Trajectory(
        trajectory_id=7,
        group_id=1,
        task=Task(task_id="t", instruction="", milestones=goals),
        status="terminated",
        turns=TURNS,
        score=0.0,
        reward=0.0,
        milestones=(ReachedMilestone(name="a", turn=0), ReachedMilestone(name="c", turn=2)),
    )
    assert rescore(entry, found, max_turns=8).reward == 0.5


def test_every_field_can_be_used():
    once = " && ".join(f"{name} == {name}" for name in OF_TRAJECTORIES)
    of_turns = " && ".join(f"{name} == {name}" for name in OF_TURNS)
    assert value(once) == 1.0
    assert value(of_turns, "mean") == 1.0


@pytest.mark.parametrize(
    ("section", "field", "problem"),
    [
        ({"preset": "mine.v1"}, "rewards.preset", "unknown reward preset 'mine.v1'"),
        (
            {"preset": "first-desk.v1", "definition": {"terms": [{"term": "task_score.v1", "weight": 1}]}},
            "rewards.definition",
            "shipped preset, which is never edited",
        ),
        ({"preset": "mine.v1", "definition": {"terms": []}}, "rewards.definition.terms", "at least 1"),
        ({"preset": "mine.v1", "definition": "{"}, "rewards.definition", "is no JSON"),
        ({"preset": "mine.v1", "definition": "[" * 90_000}, "rewards.definition", "is no JSON"),
        (
            {"preset": "mine.v1", "definition": {"terms": [{"term": "a", "weight": 1}] * 2}},
            "rewards.definition",
            "a occurs twice",
        ),
        (
            {
                "preset": "mine.v1",
                "definition": {"terms": [{"term": "a.v1", "weight": 1, "expression": "1"}]},
            },
            "rewards.definition.terms.0",
            "a name without a version",
        ),
        (
            {"preset": "mine.v1", "definition": {"terms": [{"term": "a", "weight": 1}], "low": 2, "high": 1}},
            "rewards.definition",
            "low 2 is above high 1",
        ),
    ],
)
def test_a_config_that_explains_nothing_is_refused(section, field, problem):
    with pytest.raises(ConfigError) as refused:
        parse_config({"rewards": section})
    assert problem in refused.value.problems[field]


def test_a_definition_reads_the_same_as_text_and_as_values():
    definition = REWARD_PRESETS["slime-osworld.v1"].model_dump(mode="json")
    as_values = RewardConfig(preset="mine.v1", definition=definition)
    assert RewardConfig(preset="mine.v1", definition=json.dumps(definition)) == as_values
    assert as_values.terms == REWARD_PRESETS["slime-osworld.v1"]


NEEDED = {
    ActionKind.PASTE: {"text": "a"},
    ActionKind.KEY_DOWN: {"keys": ("ctrl",)},
    ActionKind.KEY_UP: {"keys": ("ctrl",)},
}


@given(
    st.lists(st.sampled_from([None, *ActionKind]), max_size=12),
    st.floats(0, 1),
    st.sampled_from(sorted(REWARD_PRESETS)),
)
def test_a_shipped_preset_under_another_name_gives_the_same_reward(kinds, score, preset):
    turns = [
        turn(kind, x=index % 3, y=1, **NEEDED.get(kind, {})) if kind else turn("")
        for index, kind in enumerate(kinds)
    ]
    again = RewardConfig(preset="mine.v1", definition=REWARD_PRESETS[preset])
    assert compute_reward(turns, score, again, max_turns=9) == compute_reward(
        turns, score, RewardConfig(preset=preset), max_turns=9
    )
