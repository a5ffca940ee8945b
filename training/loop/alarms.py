"""Guards: each looks at one step and says with which number, why, and what to do.

One function per guard, one row in `GUARDS`. A guard that depends on the past reads the
`AlarmHistory`, which is saved with the checkpoints.
"""

import statistics

from training.contracts.number_text import share_text
from training.contracts.trainer_reports import Alarm
from training.loop.learning_guards import (
    all_zero_rewards,
    entropy_collapse,
    no_update,
    saturated_term,
    settled,
    zero_variance,
)
from training.loop.step_facts import Guard, StepFacts, alarm_above, alarm_of
from training.loop.truncation_limits import by_limits, limits_hit, remedy_of

MIN_HISTORY = 5
"""Steps before the running median of the gradient norm means something."""
PARSE_COLLAPSE_FACTOR = 3.0
"""A jump of the parse-error rate by this factor over the run's median is a collapse, too."""
ENDLESS_SHARE = 0.25
LEAST_ENDLESS = 8
"""Trajectories of a step: fewer may be chance."""
CHECKPOINT_GRACE = 2
"""A checkpoint is stale when it is older than this many times `checkpoints.every`."""


def check_step(facts: StepFacts) -> list[Alarm]:
    """Every alarm of a step, in table order."""
    return [alarm for guard in GUARDS.values() if (alarm := guard(facts)) is not None]


def grad_norm_explosion(facts: StepFacts) -> Alarm | None:
    """The gradient is not finite, or far above the running median."""
    value = facts.metrics.get("optimiser/grad_norm", 0.0)
    remedy = (
        "Lower optimiser.learning_rate or max_grad_norm; look at the step's trajectories for odd lengths."
    )
    if facts.was_skipped:
        return alarm_of(
            "grad_norm_explosion", facts, -1.0, 0.0,
            "a gradient was not finite; its update was skipped on all processes", remedy, severity="critical",
        )  # fmt: skip
    norms = [norm for norm in facts.history.grad_norms if norm > 0]
    # The few groups of a solved set that still differ make few, and so rough, gradients.
    if len(norms) < MIN_HISTORY or facts.is_solved:
        return None
    limit = statistics.median(norms) * facts.config.alarms.grad_norm_factor
    return alarm_above(
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
    return alarm_above(
        "parse_collapse", facts, value, limit,
        f"{share_text(value)} of the turns had no parsable action",
        "Lower the learning rate, give the format term more weight (rewards.preset), or raise "
        "sampling.max_completion_tokens if completions are cut off.",
    )  # fmt: skip


def truncation(facts: StepFacts) -> Alarm | None:
    """Trajectories hit a limit instead of ending."""
    value, limit = facts.metrics["rollout/truncation_rate"], facts.config.alarms.truncation_rate
    hit = limits_hit(facts.groups, facts.config)
    return alarm_above(
        "truncation", facts, value, limit,
        f"{share_text(value)} of the trajectories hit a limit before they ended{by_limits(hit)}",
        remedy_of(hit),
    )  # fmt: skip


def endless_successes(facts: StepFacts) -> Alarm | None:
    """What reaches the state goes on until a limit."""
    reached, endless = facts.metrics["rollout/success"], facts.metrics["rollout/solved_at_limit"]
    number = endless * facts.metrics["rollout/num_trajectories"]
    if number < LEAST_ENDLESS or reached == 0:
        return None
    return alarm_above(
        "endless_successes", facts, endless / reached, ENDLESS_SHARE,
        f"{share_text(endless / reached)} of the trajectories that solved their task went on until a limit",
        "Give the score only where the agent ended it (a rewards.preset with ended_score), set "
        "algorithm.void_turns to no_credit, and take replay entries out that a limit ended.",
    )  # fmt: skip


def errored_trajectories(facts: StepFacts) -> Alarm | None:
    """Infrastructure failed too often."""
    value, limit = facts.metrics["rollout/errored_rate"], facts.config.alarms.errored_rate
    return alarm_above(
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
    return alarm_above(
        "untrainable_trajectories", facts, value, 0.0,
        f"{value:.0f} trajectories were not trained on ({words})",
        "The trainer's log names each one and why; engine, tokenizer and prompt must be the trainer's.",
        severity="critical" if value > sum(len(group.scored()) for group in facts.groups) / 2 else "warning",
    )  # fmt: skip


def logprob_drift(facts: StepFacts) -> Alarm | None:
    """Engine and trainer disagree about the same tokens."""
    value, limit = facts.metrics.get("sync/drift", 0.0), facts.config.alarms.logprob_drift
    return alarm_above(
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
    return alarm_above(
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
    return alarm_above(
        "stale_checkpoint", facts, value, limit,
        f"the last checkpoint is {value} steps old",
        "Look at the log for failed saves and at the free space of checkpoints.directory.",
    )  # fmt: skip


GUARDS: dict[str, Guard] = {
    "zero_variance": zero_variance,
    "all_zero_rewards": all_zero_rewards,
    "no_update": no_update,
    "settled": settled,
    "saturated_term": saturated_term,
    "entropy_collapse": entropy_collapse,
    "grad_norm_explosion": grad_norm_explosion,
    "parse_collapse": parse_collapse,
    "truncation": truncation,
    "endless_successes": endless_successes,
    "errored_trajectories": errored_trajectories,
    "untrainable_trajectories": untrainable_trajectories,
    "logprob_drift": logprob_drift,
    "logprob_gap": logprob_gap,
    "stale_checkpoint": stale_checkpoint,
}
