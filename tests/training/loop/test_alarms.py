"""Guards: each stays silent on a healthy step and fires on its own trouble, with number and remedy."""

from __future__ import annotations

import math

import pytest

from testing.training.sample_values import make_group
from training.contracts.config import ExperimentConfig
from training.contracts.types import RewardTerm
from training.loop.alarms import GUARDS, AlarmHistory, StepFacts, check_step

HEALTHY = {
    "rollout/zero_variance_fraction": 0.25,
    "rollout/success": 0.4,
    "rollout/parse_error_rate": 0.02,
    "rollout/truncation_rate": 0.1,
    "rollout/errored_rate": 0.0,
    "loss/entropy": 0.5,
    "optimiser/grad_norm": 1.0,
    "sync/drift": 0.001,
}


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


def with_term(contributions: list[float]) -> list:
    group = make_group([0.0] * len(contributions))
    members = [
        member.model_copy(
            update={
                "terms": (
                    *member.terms,
                    RewardTerm(name="format.v1", value=1, weight=1, contribution=contribution),
                )
            }
        )
        for member, contribution in zip(group.trajectories, contributions, strict=True)
    ]
    return [group.model_copy(update={"trajectories": tuple(members)})]


def test_a_healthy_step_raises_nothing() -> None:
    assert check_step(facts()) == []


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("zero_variance", facts({"rollout/zero_variance_fraction": 0.9}), 0.9),
        ("all_zero_rewards", facts({"rollout/success": 0.0}, zero_reward_steps=2), 3),
        ("saturated_term", facts(groups=with_term([0.1] * 8)), 1.0),
        ("entropy_collapse", facts({"loss/entropy": 0.03}), 0.95),
        ("grad_norm_explosion", facts({"optimiser/grad_norm": 11.0}), 11.0),
        ("grad_norm_explosion", facts({"optimiser/grad_norm": math.nan}, was_skipped=True), -1.0),
        ("parse_collapse", facts({"rollout/parse_error_rate": 0.35}), 0.35),
        ("parse_collapse", facts({"rollout/parse_error_rate": 0.2}), 0.2),  # a jump from 2 %
        ("truncation", facts({"rollout/truncation_rate": 0.8}), 0.8),
        ("errored_trajectories", facts({"rollout/errored_rate": 0.1}), 0.1),
        ("logprob_drift", facts({"sync/drift": 0.2}), 0.2),
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


@pytest.mark.parametrize(
    "given",
    [
        facts({"rollout/success": 0.0}, zero_reward_steps=1),
        facts({"optimiser/grad_norm": 50.0}, grad_norms=[1.0] * 3),  # too early for a median
        facts(groups=with_term([0.1] * 7 + [0.2])),
        facts(groups=with_term([0.0] * 8)),  # nobody gets it: that is not saturation
        facts({"loss/entropy": 0.07}),
        facts({"rollout/parse_error_rate": 0.14}),
    ],
)
def test_guards_stay_silent_below_their_limits(given: StepFacts) -> None:
    assert check_step(given) == []


def test_history_remembers_what_the_guards_need_and_survives_json() -> None:
    kept = AlarmHistory()
    for entropy in (0.4, 0.9, 0.5):
        kept.remember(HEALTHY | {"loss/entropy": entropy, "rollout/success": 0.0})
    assert kept.max_entropy == 0.9
    assert kept.zero_reward_steps == 3
    assert AlarmHistory(**kept.to_json()) == kept
    kept.remember(HEALTHY)
    assert kept.zero_reward_steps == 0


def test_every_alarm_of_the_product_has_a_guard() -> None:
    assert len(GUARDS) == 10
