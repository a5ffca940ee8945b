"""Guards: each looks at one step and says with which number, why, and what to do.

One function per guard, one row in `GUARDS`. A guard that depends on the past reads the
`AlarmHistory`, which is saved with the checkpoints.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from training.contracts.config import ExperimentConfig
from training.contracts.config.algorithm import imitates_successes
from training.contracts.number_text import share_text
from training.contracts.trainer_reports import Alarm
from training.contracts.types import Group, RewardTerm
from training.loop.alarm_history import AlarmHistory
from training.loop.truncation_limits import by_limits, limits_hit, remedy_of
from training.rollouts.temperature_schedule import temperature_at

MIN_HISTORY = 5
"""Steps before the running median of the gradient norm means something."""
ZERO_REWARD_STEPS = 3
"""Steps in a row without a single success before all-zero rewards are an alarm."""
SATURATED_SHARE = 0.95
"""A term is saturated when this share of the trajectories has its largest magnitude."""
PARSE_COLLAPSE_FACTOR = 3.0
"""A jump of the parse-error rate by this factor over the run's median is a collapse, too."""
SOLVED_SHARE = 0.9
"""Success of a step's rollouts from which equal rewards and a sure policy are what was aimed at."""
TELLING_SUCCESS = 0.25
"""Success of a step's rollouts from which the score alone tells trajectories apart."""
CHECKPOINT_GRACE = 2
"""A checkpoint is stale when it is older than this many times `checkpoints.every`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """What the guards look at."""

    step: int
    metrics: dict[str, float]
    groups: Sequence[Group]
    """As the desktops returned them."""
    was_skipped: bool
    """The gradient of an update was not finite."""
    history: AlarmHistory
    """Of the steps before this one."""
    config: ExperimentConfig

    @property
    def is_solved(self) -> bool:
        """True when nearly every rollout of the step solved its task."""
        return self.metrics["rollout/success"] >= SOLVED_SHARE

    @property
    def temperature(self) -> float:
        """That the step's rollouts were sampled at."""
        return temperature_at(self.config.sampling, self.step - 1)


Guard = Callable[[StepFacts], Alarm | None]


def check_step(facts: StepFacts) -> list[Alarm]:
    """Every alarm of a step, in table order."""
    return [alarm for guard in GUARDS.values() if (alarm := guard(facts)) is not None]


def zero_variance(facts: StepFacts) -> Alarm | None:
    """Groups whose members all earned the same teach nothing; where successes are imitated, they may."""
    if imitates_successes(facts.config.algorithm) or facts.is_solved:
        return None
    value, limit = facts.metrics["rollout/zero_variance_fraction"], facts.config.alarms.zero_variance_fraction
    return _alarm_above(
        "zero_variance", facts, value, limit,
        f"{share_text(value)} of the groups have equal rewards: nothing to learn from them",
        "Choose tasks nearer to 50 % success, raise algorithm.group_size, or enable replay.",
    )  # fmt: skip


def all_zero_rewards(facts: StepFacts) -> Alarm | None:
    """No success in several steps."""
    if facts.metrics["rollout/success"] > 0:
        return None
    value, limit = facts.history.zero_reward_steps + 1, ZERO_REWARD_STEPS
    if value < limit:
        return None
    return _alarm(
        "all_zero_rewards", facts, value, limit,
        f"no trajectory has solved its task for {value} steps",
        "Start from a better checkpoint (sft.enabled), choose easier tasks.levels, or enable replay.",
        severity="critical",
    )  # fmt: skip


def saturated_term(facts: StepFacts) -> Alarm | None:
    """A shaping term that nearly everyone gets alike, where the score tells trajectories apart no more."""
    if facts.metrics["rollout/success"] >= TELLING_SUCCESS:
        return None
    scored = [member for group in facts.groups for member in group.scored()]
    for name, share in _saturated_shares([member.terms for member in scored]):
        if share >= SATURATED_SHARE:
            return _alarm(
                "saturated_term", facts, share, SATURATED_SHARE,
                f"reward term {name} has the same non-zero value in {share_text(share)} of the trajectories",
                "Choose a reward preset with a smaller weight of this term, or harder tasks.",
            )  # fmt: skip
    return None


def entropy_collapse(facts: StepFacts) -> Alarm | None:
    """The policy stopped exploring."""
    highest, now = facts.history.max_entropy_at(facts.temperature), facts.metrics.get("loss/entropy")
    if now is None or highest <= 0 or facts.is_solved:
        return None
    value, limit = 1 - now / highest, facts.config.alarms.entropy_drop
    return _alarm_above(
        "entropy_collapse", facts, value, limit,
        f"entropy fell by {share_text(value)} from its maximum ({highest:.3f} to {now:.3f} nats per token)",
        "Go back to an earlier checkpoint with a smaller learning rate, a larger clip_high "
        "or an entropy_coefficient.",
    )  # fmt: skip


def grad_norm_explosion(facts: StepFacts) -> Alarm | None:
    """The gradient is not finite, or far above the running median."""
    value = facts.metrics.get("optimiser/grad_norm", 0.0)
    remedy = (
        "Lower optimiser.learning_rate or max_grad_norm; look at the step's trajectories for odd lengths."
    )
    if facts.was_skipped:
        return _alarm(
            "grad_norm_explosion", facts, -1.0, 0.0,
            "a gradient was not finite; its update was skipped on all processes", remedy, severity="critical",
        )  # fmt: skip
    norms = [norm for norm in facts.history.grad_norms if norm > 0]
    if len(norms) < MIN_HISTORY:
        return None
    limit = statistics.median(norms) * facts.config.alarms.grad_norm_factor
    return _alarm_above(
        "grad_norm_explosion", facts, value, limit,
        f"gradient norm {value:.3g}, limit {limit:.3g} ({facts.config.alarms.grad_norm_factor:g} x median)",
        remedy,
    )  # fmt: skip


def parse_collapse(facts: StepFacts) -> Alarm | None:
    """Completions stopped being actions."""
    value, limit = facts.metrics["rollout/parse_error_rate"], facts.config.alarms.parse_error_rate
    past = facts.history.parse_error_rates
    if len(past) >= MIN_HISTORY:
        # A jump from a low level is a collapse long before it reaches the absolute limit.
        limit = min(limit, max(PARSE_COLLAPSE_FACTOR * statistics.median(past), limit / 2))
    return _alarm_above(
        "parse_collapse", facts, value, limit,
        f"{share_text(value)} of the turns had no parsable action",
        "Lower the learning rate, give the format term more weight (rewards.preset), or raise "
        "sampling.max_completion_tokens if completions are cut off.",
    )  # fmt: skip


def truncation(facts: StepFacts) -> Alarm | None:
    """Trajectories hit a limit instead of ending."""
    value, limit = facts.metrics["rollout/truncation_rate"], facts.config.alarms.truncation_rate
    hit = limits_hit(facts.groups, facts.config)
    return _alarm_above(
        "truncation", facts, value, limit,
        f"{share_text(value)} of the trajectories hit a limit before they ended{by_limits(hit)}",
        remedy_of(hit),
    )  # fmt: skip


def errored_trajectories(facts: StepFacts) -> Alarm | None:
    """Infrastructure failed too often."""
    value, limit = facts.metrics["rollout/errored_rate"], facts.config.alarms.errored_rate
    return _alarm_above(
        "errored_trajectories", facts, value, limit,
        f"{share_text(value)} of the trajectories errored; they count in no group",
        "Open an errored trajectory for its reason: free the disk that it names, or use fewer desktops if "
        "the host is overloaded.",
    )  # fmt: skip


def untrainable_trajectories(facts: StepFacts) -> Alarm | None:
    """Records that must not meet the optimiser."""
    counts = {
        name.removeprefix("dropped/"): n for name, n in facts.metrics.items() if name.startswith("dropped/")
    }
    value = sum(counts.values())
    words = ", ".join(f"{count:.0f} {reason.replace('_', ' ')}" for reason, count in counts.items() if count)
    return _alarm_above(
        "untrainable_trajectories", facts, value, 0.0,
        f"{value:.0f} trajectories were not trained on ({words})",
        "The trainer's log names each one and why; engine, tokenizer and prompt must be the trainer's.",
        severity="critical" if value > sum(len(group.scored()) for group in facts.groups) / 2 else "warning",
    )  # fmt: skip


def logprob_drift(facts: StepFacts) -> Alarm | None:
    """Engine and trainer disagree about the same tokens."""
    value, limit = facts.metrics.get("sync/drift", 0.0), facts.config.alarms.logprob_drift
    return _alarm_above(
        "logprob_drift", facts, value, limit,
        f"after the weight sync engine and trainer differ by {value:.4f} nats per token on the canary",
        "The engine may hold old or misnamed weights, or see other pixels: pause, resume, "
        "and compare model.dtype.",
        severity="critical",
    )  # fmt: skip


def logprob_gap(facts: StepFacts) -> Alarm | None:
    """Engine and trainer disagree about what the policy sampled on the desktops."""
    value, age = facts.metrics.get("policy/logprob_gap", 0.0), facts.metrics.get("async/staleness_mean", 0.0)
    limit = facts.config.alarms.logprob_gap * (1 + age)
    return _alarm_above(
        "logprob_gap", facts, value, limit,
        f"engine and trainer differ by {value:.4f} nats per token on the step's rollouts, which are "
        f"{age:.1f} policy versions old",
        "Fresh rollouts: compare model.dtype, engine.dtype and model.fp32_logits, and look at the drift "
        "after weight syncs. Old ones: the policy moves far per step; lower optimiser.learning_rate or "
        "algorithm.max_staleness.",
    )  # fmt: skip


def stale_checkpoint(facts: StepFacts) -> Alarm | None:
    """Too much would be lost by a crash."""
    limit = CHECKPOINT_GRACE * facts.config.checkpoints.every
    value = facts.step - facts.history.last_checkpoint_step
    return _alarm_above(
        "stale_checkpoint", facts, value, limit,
        f"the last checkpoint is {value} steps old",
        "Look at the log for failed saves and at the free space of checkpoints.directory.",
    )  # fmt: skip


GUARDS: dict[str, Guard] = {
    "zero_variance": zero_variance,
    "all_zero_rewards": all_zero_rewards,
    "saturated_term": saturated_term,
    "entropy_collapse": entropy_collapse,
    "grad_norm_explosion": grad_norm_explosion,
    "parse_collapse": parse_collapse,
    "truncation": truncation,
    "errored_trajectories": errored_trajectories,
    "untrainable_trajectories": untrainable_trajectories,
    "logprob_drift": logprob_drift,
    "logprob_gap": logprob_gap,
    "stale_checkpoint": stale_checkpoint,
}


def _saturated_shares(rows: Iterable[Sequence[RewardTerm]]) -> list[tuple[str, float]]:
    """(term, share of trajectories with its most common value, if not zero); task score apart."""
    values: dict[str, list[float]] = {}
    for terms in rows:
        for term in terms:
            values.setdefault(term.name, []).append(round(term.contribution, 6))
    shares = []
    for name, contributions in sorted(values.items()):
        common = statistics.mode(contributions)
        if not name.startswith("task_score") and common != 0:
            shares.append((name, contributions.count(common) / len(contributions)))
    return shares


def _alarm_above(
    name: str,
    facts: StepFacts,
    value: float,
    limit: float,
    message: str,
    remedy: str,
    severity: Literal["warning", "critical"] = "warning",
) -> Alarm | None:
    """None while `value` is at most `limit`."""
    return None if value <= limit else _alarm(name, facts, value, limit, message, remedy, severity)


def _alarm(
    name: str,
    facts: StepFacts,
    value: float,
    limit: float,
    message: str,
    remedy: str,
    severity: Literal["warning", "critical"] = "warning",
) -> Alarm:
    return Alarm(
        name=name,
        step=facts.step,
        value=value,
        limit=limit,
        message=message,
        remedy=remedy,
        severity=severity,
    )
