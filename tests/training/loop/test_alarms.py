"""Guards: each stays silent on a healthy step and fires on its own trouble, with number and remedy."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from testing.recorded_runs import replay_runs, smoldesk_runs
from testing.training.sample_values import make_group
from training.contracts.config import ExperimentConfig
from training.contracts.config.alarm_limits import AlarmConfig
from training.contracts.types import Group, Limit, RewardTerm, TrajectoryStatus
from training.loop.alarm_history import AlarmHistory
from training.loop.alarms import GUARDS, check_step, endless_successes, grad_norm_explosion
from training.loop.step_facts import StepFacts

HEALTHY = {
    "rollout/zero_variance_fraction": 0.25,
    "rollout/success": 0.4,
    "rollout/solved": 0.38,
    "rollout/parse_error_rate": 0.02,
    "rollout/truncation_rate": 0.1,
    "rollout/errored_rate": 0.0,
    "rollout/num_trajectories": 64.0,
    "rollout/solved_at_limit": 0.02,
    "loss/entropy": 0.5,
    "optimiser/grad_norm": 1.0,
    "sync/drift": 0.001,
}


ROLLOUT = {name for name in HEALTHY if name.startswith("rollout/")}
FAILED = {"rollout/success": 0.0}
SURE = {"loss/entropy": 0.015, "rollout/zero_variance_fraction": 0.78}


def without_update(success: float, steps_before: int = 4) -> StepFacts:
    given = facts({"rollout/success": success, "rollout/solved": success}, steps_without_update=steps_before)
    metrics = {name: value for name, value in given.metrics.items() if name in ROLLOUT}
    return replace(given, metrics=metrics)


def history(**changes: object) -> AlarmHistory:
    values = {
        "max_entropy": 0.6,
        "grad_norms": [1.0] * 6,
        "parse_error_rates": [0.02] * 6,
        "last_checkpoint_step": 5,
    }
    return AlarmHistory(**(values | changes))  # type: ignore[arg-type]


def facts(
    metrics: dict | None = None, *, step: int = 7, was_skipped: bool = False, **kept: object
) -> StepFacts:
    return StepFacts(
        step=step,
        metrics=HEALTHY | (metrics or {}),
        groups=kept.pop("groups", [make_group([1.0, 0.0])]),  # type: ignore[arg-type]
        was_skipped=was_skipped,
        history=history(**kept),
        config=ExperimentConfig(),
    )


def with_term(contributions: list[float], name: str = "format.v1", num_solved: int = 0) -> list:
    group = make_group([1.0] * num_solved + [0.0] * (len(contributions) - num_solved))
    members = [
        member.model_copy(
            update={
                "terms": (
                    *member.terms,
                    RewardTerm(name=name, value=1, weight=1, contribution=contribution),
                )
            }
        )
        for member, contribution in zip(group.trajectories, contributions, strict=True)
    ]
    return [group.model_copy(update={"trajectories": tuple(members)})]


def test_a_healthy_step_raises_nothing() -> None:
    assert check_step(facts()) == []


def test_groups_of_successes_are_no_trouble_where_successes_are_imitated() -> None:
    config = ExperimentConfig.model_validate({"algorithm": {"name": "rejection_fine_tuning"}})
    given = replace(facts({"rollout/zero_variance_fraction": 0.9}), config=config)
    assert check_step(given) == []


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("zero_variance", facts({"rollout/zero_variance_fraction": 0.9}), 0.9),
        ("all_zero_rewards", facts(FAILED, groups=[make_group([0.0] * 8)], zero_reward_steps=2), 3),
        ("all_zero_rewards", facts(FAILED, groups=[make_group([0.125] * 8)], zero_reward_steps=2), 3),
        ("settled", facts(SURE, max_entropy=0.02, settled_steps=2), 0.015),
        ("saturated_term", facts({"rollout/success": 0.1}, groups=with_term([0.1] * 8)), 1.0),
        ("entropy_collapse", facts({"loss/entropy": 0.03}), 0.95),
        ("grad_norm_explosion", facts({"optimiser/grad_norm": 11.0}), 11.0),
        ("grad_norm_explosion", facts({"optimiser/grad_norm": math.nan}, was_skipped=True), -1.0),
        ("parse_collapse", facts({"rollout/parse_error_rate": 0.35}), 0.35),
        ("parse_collapse", facts({"rollout/parse_error_rate": 0.2}), 0.2),  # a jump from 2 %
        ("truncation", facts({"rollout/truncation_rate": 0.8}), 0.8),
        ("endless_successes", facts({"rollout/solved_at_limit": 0.16}), 0.4),
        ("errored_trajectories", facts({"rollout/errored_rate": 0.1}), 0.1),
        ("untrainable_trajectories", facts({"dropped/not_finite": 2.0, "dropped/too_long": 1.0}), 3.0),
        ("logprob_drift", facts({"sync/drift": 0.2}), 0.2),
        ("logprob_gap", facts({"policy/logprob_gap": 0.06}), 0.06),
        ("logprob_gap", facts({"policy/logprob_gap": 0.16, "async/staleness_mean": 2.0}), 0.16),
        ("stale_checkpoint", facts(step=16), 11),
    ],
)
def test_each_guard_fires_on_its_own_trouble(name: str, given: StepFacts, value: float) -> None:
    (alarm,) = check_step(given)
    assert alarm.name == name
    assert alarm.value == pytest.approx(value)
    assert alarm.message
    assert alarm.remedy
    assert alarm.step == given.step


def test_a_recorded_run_that_learned_never_to_stop_is_named_while_it_trains() -> None:
    """Six runs of SmolLM2 on real desktops: the first by rejection stops no more after 22 steps."""
    fired = {}
    for name in (f"demonstrated/{arm}/seed {seed}" for arm in ("rejection", "grpo") for seed in range(3)):
        curves = smoldesk_runs()[name]["curves"]
        for (step, success), (_, solved) in zip(
            curves["rollout/success"], curves["rollout/solved"], strict=True
        ):
            ends = {"rollout/solved_at_limit": success - solved, "rollout/num_trajectories": 128.0}
            if endless_successes(facts({"rollout/success": success} | ends)):
                fired.setdefault(name, []).append(step)
    assert fired == {"demonstrated/rejection/seed 0": list(range(23, 41))}


def test_a_rough_gradient_of_a_recorded_run_that_solves_its_set_is_no_trouble() -> None:
    """SmolLM2 with replay in a mix: at step 40 one of 16 groups differed, and 98 % were solved."""
    curves = replay_runs()["mix/replay"]["curve"]
    solved, norms = dict(curves["rollout/reward_mean"]), curves["optimiser/grad_norm"]
    found = {}
    for place, (step, norm) in enumerate(norms):
        past = [earlier for _, earlier in norms[:place]]
        for share in (solved[step], 0.5):
            given = facts({"optimiser/grad_norm": norm, "rollout/solved": share}, grad_norms=past)
            found.setdefault(share == 0.5, []).append(grad_norm_explosion(given) is not None)
    assert not any(found[False])
    assert sum(found[True]) == 1, "the same gradients where half are solved"


@pytest.mark.parametrize(
    "sign",
    [{"rollout/zero_variance_fraction": 0.95}, {"loss/entropy": 0.001}],
    ids=["equal rewards", "a sure policy"],
)
def test_a_solved_task_set_is_no_trouble(sign: dict[str, float]) -> None:
    assert check_step(facts({"rollout/success": 0.92, "rollout/solved": 0.91} | sign)) == []
    for solved in (0.5, 0.85):
        assert len(check_step(facts({"rollout/success": 0.92, "rollout/solved": solved} | sign))) == 1


@pytest.mark.parametrize(
    "given",
    [
        facts(FAILED, groups=[make_group([0.0] * 8)], zero_reward_steps=1),
        facts(FAILED, groups=[make_group([0.125, 0.25])], zero_reward_steps=9),  # graded: it teaches
        facts({"optimiser/grad_norm": 50.0, "rollout/solved": 0.95}),  # few groups differ still
        facts({"optimiser/grad_norm": 50.0}, grad_norms=[1.0] * 3),  # too early for a median
        facts({"rollout/success": 0.1}, groups=with_term([0.1] * 7 + [0.2])),
        facts({"rollout/success": 0.1}, groups=with_term([0.125] * 8, "ended_score.v1")),
        facts(groups=with_term([0.1] * 8)),  # the score still tells trajectories apart
        facts({"rollout/success": 0.03}, groups=with_term([0.1] * 8, num_solved=1)),
        facts({"rollout/success": 0.1}, groups=with_term([0.0] * 8)),  # none gets it: no saturation
        facts({"loss/entropy": 0.07}),
        facts({"rollout/solved_at_limit": 0.09}),  # a part that may end with the next tasks
        facts({"rollout/solved_at_limit": 0.3, "rollout/num_trajectories": 24.0}),  # seven: too few
        facts({"rollout/parse_error_rate": 0.14}),
        facts({"policy/logprob_gap": 0.14, "async/staleness_mean": 2.0}),
    ],
)
def test_guards_stay_silent_below_their_limits(given: StepFacts) -> None:
    assert check_step(given) == []


@pytest.mark.parametrize(
    ("success", "why"), [(0.0, "every group failed"), (0.5, "no group's rewards differed")]
)
def test_steps_without_an_update_say_why(success: float, why: str) -> None:
    (alarm,) = [one for one in check_step(without_update(success)) if one.name == "no_update"]
    assert alarm.message == f"no update was made in 5 steps: {why}"
    assert (alarm.value, alarm.limit, alarm.severity) == (5, 5, "critical")


def test_an_imitation_without_an_update_says_what_it_lacks() -> None:
    config = ExperimentConfig.model_validate({"algorithm": {"name": "rejection_fine_tuning"}})
    (alarm,) = check_step(replace(without_update(0.5), config=config))
    assert alarm.message.endswith("no trajectory that solved its task was ended by the agent")


@pytest.mark.parametrize(
    "given", [without_update(0.0, 3), without_update(0.95)], ids=["one step too few", "solved"]
)
def test_a_step_without_an_update_is_no_trouble_by_itself(given: StepFacts) -> None:
    assert "no_update" not in {one.name for one in check_step(given)}


@pytest.mark.parametrize(
    ("sign", "steps"),
    [
        ({"loss/entropy": 0.02}, 2),
        ({"rollout/zero_variance_fraction": 0.75}, 2),
        ({"rollout/success": 0.95, "rollout/solved": 0.95}, 2),
        ({}, 1),
    ],
)
def test_a_policy_has_settled_only_when_sure_alike_unsolved_and_for_long(sign: dict, steps: int) -> None:
    found = check_step(facts(SURE | sign, max_entropy=0.02, settled_steps=steps))
    assert "settled" not in {one.name for one in found}


def test_history_counts_settled_steps_and_those_without_an_update() -> None:
    kept = AlarmHistory()
    flat = without_update(0.0).metrics | {"rollout/zero_variance_fraction": 1.0}
    for metrics in (HEALTHY | SURE, flat):
        kept.remember(metrics, 1.0, AlarmConfig())
    assert (kept.settled_steps, kept.steps_without_update) == (2, 1)
    given = replace(facts(flat), history=kept, metrics=flat)
    assert "settled" in {one.name for one in check_step(given)}, "all groups are alike"
    kept.remember(HEALTHY, 1.0, AlarmConfig())
    assert (kept.settled_steps, kept.steps_without_update) == (0, 0)
    kept.remember(flat, 1.0, AlarmConfig())
    assert kept.settled_steps == 0, "the newest entropy that is known is not a sure policy's"
    kept.remember(HEALTHY | SURE, 1.0, AlarmConfig())
    kept.remember(flat, 0.5, AlarmConfig())
    assert kept.settled_steps == 0, "that entropy was of another temperature"


def test_history_remembers_what_the_guards_need_and_survives_json() -> None:
    kept = AlarmHistory()
    for entropy in (0.4, 0.9, 0.5):
        kept.remember(HEALTHY | {"loss/entropy": entropy, "rollout/success": 0.0}, 1.0, AlarmConfig())
    assert kept.max_entropy == 0.9
    assert kept.zero_reward_steps == 3
    assert AlarmHistory(**kept.to_json()) == kept
    kept.remember(HEALTHY, 1.0, AlarmConfig())
    assert kept.zero_reward_steps == 0


def test_a_planned_change_of_temperature_is_no_collapse_and_a_collapse_after_it_is() -> None:
    """A sure policy: 0.00845 nats at 0.8 are 0.00001 at 0.5, of the same weights."""
    config = ExperimentConfig.model_validate(
        {"sampling": {"temperature": 0.8, "later_temperature": 0.5, "later_from_step": 7}}
    )

    def fires(step: int, entropy: float, kept: AlarmHistory) -> bool:
        given = replace(facts({"loss/entropy": entropy}, step=step), history=kept, config=config)
        fired = "entropy_collapse" in [alarm.name for alarm in check_step(given)]
        kept.remember(given.metrics, given.temperature, AlarmConfig())
        return fired

    kept = AlarmHistory()
    assert not fires(7, 0.00845, kept)
    before = AlarmHistory(**kept.to_json())
    assert not fires(8, 0.00001, kept), "the first step at 0.5"
    assert fires(9, 0.0000005, kept)
    assert not fires(9, 0.00001, before), "gone back to a checkpoint of the first phase"
    old = AlarmHistory(max_entropy=0.6)
    assert fires(7, 0.01, old), "of a checkpoint that did not record the temperature"


def test_every_alarm_of_the_product_has_a_guard() -> None:
    assert len(GUARDS) == 15


def truncated(limit: Limit, task_turns: int | None = None) -> Group:
    """A group whose two members were ended by a limit."""
    group = make_group([0.0, 0.0])
    members = tuple(
        member.model_copy(
            update={
                "limit": limit,
                "status": TrajectoryStatus.TRUNCATED,
                "task": member.task.model_copy(update={"max_turns": task_turns}),
            }
        )
        for member in group.trajectories
    )
    return group.model_copy(update={"trajectories": members})


def test_the_remedy_of_truncation_is_for_the_limit_that_was_hit() -> None:
    rate = {"rollout/truncation_rate": 0.8}
    (alarm,) = check_step(facts(rate, groups=[truncated(Limit.TASK_TURNS, 8)]))
    assert "2 by their task's own max_turns (8)" in alarm.message
    assert "Raise desktops.max_turns" not in alarm.remedy
    groups = [truncated(Limit.TOKENS), truncated(Limit.TOKENS), truncated(Limit.TIME)]
    (alarm,) = check_step(facts(rate, groups=groups))
    assert "4 by sampling.max_context_tokens (2048), 2 by desktops.trajectory_timeout_s" in alarm.message
    assert alarm.remedy.startswith("Raise sampling.max_context_tokens")
