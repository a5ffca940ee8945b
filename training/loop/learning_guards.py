"""Guards of what is there to learn: success, its differences within groups, and the policy's doubt."""

import statistics
from collections.abc import Iterable, Sequence

from training.contracts.config.algorithm import imitates_successes
from training.contracts.number_text import share_text
from training.contracts.trainer_reports import Alarm
from training.contracts.types import Group, RewardTerm
from training.loop.alarm_history import is_settled
from training.loop.step_facts import StepFacts, alarm_above, alarm_of

ZERO_REWARD_STEPS = 3
"""Steps in a row without a single success before all-zero rewards are an alarm."""
SCORES = ("task_score.", "ended_score.")
"""Terms that are the task's own score: no shaping that could crowd it out."""
SATURATED_SHARE = 0.95
"""A term is saturated when this share of the trajectories has its largest magnitude."""
TELLING = 0.25
"""Success of a step's rollouts, or share of its groups whose scores differ, from which the score teaches:
what all members of a group get alike beside it changes no advantage."""
SETTLED_STEPS = 3
"""Steps in a row before a policy has settled: one step of flat groups is chance."""


def zero_variance(facts: StepFacts) -> Alarm | None:
    """Groups whose members all earned the same teach nothing; where successes are imitated, they may."""
    if imitates_successes(facts.config.algorithm) or facts.is_solved:
        return None
    value, limit = facts.metrics["rollout/zero_variance_fraction"], facts.config.alarms.zero_variance_fraction
    return alarm_above(
        "zero_variance", facts, value, limit,
        f"{share_text(value)} of the groups have equal rewards: nothing to learn from them",
        "Choose tasks nearer to 50 % success, raise algorithm.group_size, or enable replay.",
    )  # fmt: skip


def all_zero_rewards(facts: StepFacts) -> Alarm | None:
    """No success in several steps, nor a part of one that tells members of a group apart."""
    if facts.metrics["rollout/success"] > 0 or any(_is_graded_apart(group) for group in facts.groups):
        return None
    value, limit = facts.history.zero_reward_steps + 1, ZERO_REWARD_STEPS
    if value < limit:
        return None
    return alarm_of(
        "all_zero_rewards", facts, value, limit,
        f"no trajectory has solved its task for {value} steps",
        "Start from a better checkpoint (sft.enabled), choose easier tasks.levels, or enable replay.",
        severity="critical",
    )  # fmt: skip


def _is_graded_apart(group: Group) -> bool:
    """Evaluators that grade, as by the share of right fields, teach long before the first full score."""
    return len({member.score for member in group.scored()}) > 1


def no_update(facts: StepFacts) -> Alarm | None:
    """Nothing was learned for several steps: without a difference within a group there is no gradient."""
    if "optimiser/grad_norm" in facts.metrics or facts.is_solved:
        return None
    value, limit = facts.history.steps_without_update + 1, facts.config.alarms.steps_without_update
    if value < limit:
        return None
    return alarm_of(
        "no_update", facts, value, limit,
        f"no update was made in {value} steps: {_why_none(facts)}",
        "Demonstrate the failing tasks (take over, or accept successes) and enable replay, or imitate "
        "them first (sft.source).",
        severity="critical",
    )  # fmt: skip


def _why_none(facts: StepFacts) -> str:
    if facts.metrics["rollout/success"] == 0:
        return "every group failed"
    if imitates_successes(facts.config.algorithm):
        return "no trajectory that solved its task was ended by the agent"
    return "no group's rewards differed"


def settled(facts: StepFacts) -> Alarm | None:
    """A sure policy whose groups are alike: more steps of the same buy nothing."""
    value, limits = facts.history.entropy_at(facts.metrics, facts.temperature), facts.config.alarms
    if value is None or not is_settled(value, facts.metrics, limits) or facts.is_solved:
        return None
    if facts.history.settled_steps + 1 < SETTLED_STEPS:
        return None
    flat = facts.metrics["rollout/zero_variance_fraction"]
    return alarm_of(
        "settled", facts, value, limits.settled_entropy,
        f"the policy has settled: entropy {value:.3f} nats per token, {share_text(flat)} of the groups flat",
        "Stop here, or give it something to compare: replay of demonstrations for the failing tasks, an "
        "entropy_coefficient from an earlier checkpoint, harder or easier tasks.levels.",
    )  # fmt: skip


def saturated_term(facts: StepFacts) -> Alarm | None:
    """A shaping term that nearly everyone gets alike, where the score tells trajectories apart no more."""
    num_telling = sum(_is_graded_apart(group) for group in facts.groups)
    if facts.metrics["rollout/success"] >= TELLING or num_telling >= TELLING * len(facts.groups):
        return None
    scored = [member for group in facts.groups for member in group.scored()]
    for name, share in _saturated_shares([member.terms for member in scored]):
        if share >= SATURATED_SHARE:
            return alarm_of(
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
    return alarm_above(
        "entropy_collapse", facts, value, limit,
        f"entropy fell by {share_text(value)} from its maximum ({highest:.3f} to {now:.3f} nats per token)",
        "Go back to an earlier checkpoint with a smaller learning rate, a larger clip_high "
        "or an entropy_coefficient.",
    )  # fmt: skip


def _saturated_shares(rows: Iterable[Sequence[RewardTerm]]) -> list[tuple[str, float]]:
    """(term, share of trajectories with its most common value, if not zero); the score apart."""
    values: dict[str, list[float]] = {}
    for terms in rows:
        for term in terms:
            values.setdefault(term.name, []).append(round(term.contribution, 6))
    shares = []
    for name, contributions in sorted(values.items()):
        common = statistics.mode(contributions)
        if not name.startswith(SCORES) and common != 0:
            shares.append((name, contributions.count(common) / len(contributions)))
    return shares
