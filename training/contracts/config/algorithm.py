"""The section about the policy-gradient loss, and what its knobs cannot be combined with.

Formulas and sources of every algorithm are in `training/update/losses/` and in docs/algorithms.md.
"""

from collections.abc import Iterator
from typing import Literal

from training.contracts.config.section import Problem, Section, knob
from training.contracts.config.storable_values import PathText

RewardControl = Literal["none", "shuffled", "random"]
"""See `training.batch.reward_control`."""


class AlgorithmConfig(Section):
    """The policy-gradient loss."""

    name: Literal["grpo", "dr_grpo", "gspo", "gspo_token", "rloo", "cispo", "rejection_fine_tuning"] = knob(
        "grpo",
        "grpo, dr_grpo: token-level ratio; gspo: sequence-level ratio; gspo_token: the same with "
        "credit per token; rloo: whole-sequence ratio; cispo: clipped weight, no lost gradients; "
        "rejection_fine_tuning: no policy gradient, what the policy solved and ended is imitated.",
    )
    group_size: int = knob(8, "Trajectories of one task.", unit="trajectories", ge=2, le=128)
    groups_per_step: int = knob(4, "Tasks per step.", unit="groups", ge=1, le=1024)
    num_steps: int = knob(20, "Steps; 0 = only SFT.", unit="steps", ge=0)
    updates_per_batch: int = knob(
        1,
        "Optimiser updates per step: its groups are split into this number of parts, each with an update of "
        "its own. From the second update on the policy has moved, and the clip has something to do.",
        unit="updates",
        ge=1,
        le=64,
    )
    old_logprobs: Literal["engine", "recomputed"] = knob(
        "engine",
        "What the clipped ratio is taken against. engine = the logprobs that were recorded while sampling: "
        "the clip also bounds how far the policy is from the one that sampled. recomputed = the trainer's "
        "own before the step's first update (one more forward when there are several): the clip bounds what "
        "the updates of one step do, and nothing else; with a correction this is the decoupled objective.",
    )
    max_seconds: float = knob(
        0.0,
        "Once the GRPO stage has run for this time in an attempt, it ends with the current step and the "
        "evaluation follows; 0 = no limit.",
        unit="s",
        ge=0,
    )
    max_staleness: int = knob(
        0,
        "Policy versions that rollouts may be behind: that many steps are sampled while this one trains. "
        "0 = sample and train in turns. The further behind, the lower the learning rate that holds.",
        unit="policy versions",
        ge=0,
        le=16,
    )
    clip_low: float = knob(0.2, "Lower clip of the importance ratio.", ge=0, le=1)
    clip_high: float = knob(0.28, "Upper clip of the importance ratio.", ge=0, le=10)
    dual_clip: float = knob(
        3.0,
        "Bound c on the ratio of bad tokens: their loss is at most c |A|. 0 = off, else above 1 + clip_high.",
        ge=0,
    )
    baseline: Literal["group_mean", "leave_one_out"] = knob(
        "group_mean", "What a reward is compared with: the mean of its group, or of its siblings."
    )
    scale_advantages: bool = knob(True, "Divide advantages by the group's standard deviation.")
    least_deviation: float = knob(
        0.01,
        "With scale_advantages: what is divided by is at least this share of the reward's range (its limits, "
        "or the sum of the weights), so that nearly equal rewards teach little. 0 = no such floor.",
        ge=0,
        le=1,
    )
    reward_control: RewardControl = knob(
        "none",
        "Control experiment: advantages are made of rewards shuffled within the group, or of random ones, "
        "so the run must learn nothing. Rewards on the pages stay the true ones.",
    )
    turn_discount: float = knob(
        1.0, "A turn's reward is the trajectory's times this per turn that follows it; 1 = no discount.",
        gt=0, le=1,
    )  # fmt: skip
    credit: Literal["trajectory", "shared_states", "branches"] = knob(
        "trajectory",
        "What a turn's advantage is made of. trajectory = its trajectory's reward, alike for all turns. "
        "shared_states = the change of value that the turn made: siblings that read and did the same so far "
        "share a value, their mean reward. branches = the same, and where no sibling did, the policy goes "
        "on from there several times, which measures the value; these continuations are trained on, too.",
    )
    branch_size: int = knob(
        4,
        "With branches: continuations from each state that is measured.",
        unit="trajectories",
        ge=2,
        le=16,
    )
    branch_seconds: float = knob(
        120.0,
        "With branches: what a step's continuations may take together; each counts as long as the trajectory "
        "that it continues took.",
        unit="desktop-seconds",
        gt=0,
    )
    least_visits: int = knob(
        2,
        "With shared_states or branches: a state counts from this number of trajectories on; turns between "
        "two states that count share their difference.",
        unit="trajectories",
        ge=1,
        le=128,
    )
    train_last_turns: int = knob(
        0, "Train on this number of last turns of a trajectory only; 0 = all.", unit="turns", ge=0
    )
    aggregation: Literal["token_mean", "sequence_mean", "trajectory_mean", "constant"] = knob(
        "token_mean", "How token losses become one number."
    )
    correction: Literal["none", "truncate", "mask"] = knob(
        "none",
        "With recomputed old_logprobs: each token's loss is weighed by trainer/engine before the step, which "
        "makes up for staleness and for the engine's own numbers. truncate = cut at the bounds (TIS); mask = "
        "left out beyond them (IcePop).",
    )
    correction_low: float = knob(0.0, "Lower bound of that weight.", ge=0, le=1)
    correction_high: float = knob(2.0, "Upper bound of that weight.", ge=1)
    mask_truncated: bool = knob(
        False,
        "Overlong masking: trajectories that a limit ended count in their group's mean, but their tokens "
        "leave the loss, since a cut is not the policy's fault.",
    )
    void_turns: Literal["keep", "no_credit", "negative", "mask", "mask_trajectory"] = knob(
        "no_credit",
        "Turns whose completion held no action. keep = trained on with their trajectory's advantage, also "
        "where it is positive; no_credit = never with a positive one; negative = with one of their own, "
        "-void_turn_penalty or below; mask = their tokens leave the loss, also where they would be punished; "
        "mask_trajectory = trajectories with such a turn leave the loss whole (SimpleTIR). Rewards and their "
        "means stay as they are.",
    )
    void_turn_penalty: float = knob(
        1.0, "What the advantage of a void turn is at most, negated; used by void_turns: negative.", gt=0
    )
    mask_stale_tokens: bool = knob(
        False, "Leave single tokens older than max_staleness out, instead of their whole trajectory."
    )
    kl_coefficient: float = knob(0.0, "Weight of the KL to the reference; > 0 needs a reference.", ge=0)
    kl_estimator: Literal["k1", "k2", "k3"] = knob(
        "k3", "k3, k2: terms of the loss; k1: a penalty on each token's advantage."
    )
    reference_path: PathText = knob("", "Frozen reference checkpoint, named as model.path is; empty = none.")
    reference_offload: bool = knob(False, "Keep the reference's weights in host memory between uses.")
    entropy_coefficient: float = knob(0.0, "Entropy bonus.", ge=0, le=1)
    success_likelihood: float = knob(
        0.0, "Weight of an NLL term on what the policy solved and ended in the batch (SFT on success).", ge=0
    )
    skip_zero_variance: bool = knob(True, "Leave groups whose rewards are all equal out of the loss.")
    max_extra_groups: int = knob(
        0,
        "Limit per step: groups with equal rewards are replaced by groups of the next tasks.",
        unit="groups",
        ge=0,
        le=1024,
    )


REQUIRED: dict[str, dict[str, object]] = {
    "dr_grpo": {"scale_advantages": False, "aggregation": "constant"},
    "rloo": {"baseline": "leave_one_out", "scale_advantages": False, "aggregation": "trajectory_mean"},
    "cispo": {"dual_clip": 0},
    "rejection_fine_tuning": {
        "reward_control": "none",
        "credit": "trajectory",
        "success_likelihood": 0,
        "turn_discount": 1,
        "max_extra_groups": 0,
        "old_logprobs": "engine",
    },
}
"""Algorithm -> what its definition fixes."""
PER_SEQUENCE = ("gspo", "rloo")
"""Algorithms with one ratio, and so one advantage, per sequence."""
PER_TRAJECTORY = (*PER_SEQUENCE, "gspo_token")
"""Algorithms whose ratio is a trajectory's, also where its history makes several sequences of it."""


def algorithm_problems(algorithm: AlgorithmConfig) -> Iterator[Problem]:
    """Combinations inside the section that cannot run or would not do what they say."""
    for field, value in REQUIRED.get(algorithm.name, {}).items():
        if getattr(algorithm, field) != value:
            yield f"algorithm.{field}", f"{algorithm.name} is defined with {_text(value)}: set it"
    if algorithm.kl_coefficient > 0 and not algorithm.reference_path:
        yield "algorithm.reference_path", "kl_coefficient > 0 needs a reference checkpoint"
    yield from _ratio_problems(algorithm)
    if algorithm.name in PER_SEQUENCE:
        why = f"{algorithm.name} has one advantage per sequence: use gspo_token or grpo"
        if algorithm.turn_discount < 1:
            yield "algorithm.turn_discount", why
        if algorithm.kl_coefficient > 0 and algorithm.kl_estimator == "k1":
            yield "algorithm.kl_estimator", why
    yield from _void_turn_problems(algorithm)
    yield from _credit_problems(algorithm)
    if algorithm.max_extra_groups and not algorithm.skip_zero_variance:
        yield "algorithm.max_extra_groups", "replaces skipped groups: set skip_zero_variance"


def _credit_problems(algorithm: AlgorithmConfig) -> Iterator[Problem]:
    """Of advantages by turn."""
    if algorithm.credit == "trajectory":
        return
    if algorithm.name in PER_SEQUENCE:
        yield "algorithm.credit", f"{algorithm.name} has one advantage per sequence: use gspo_token or grpo"
    if algorithm.turn_discount < 1:
        yield "algorithm.turn_discount", "algorithm.credit already says what each turn was worth: set 1"
    if algorithm.baseline != "group_mean":
        yield "algorithm.baseline", "algorithm.credit compares means of the group: set group_mean"
    if algorithm.credit == "branches" and algorithm.reward_control != "none":
        yield "algorithm.reward_control", "branches measure the true reward: set none"


def _void_turn_problems(algorithm: AlgorithmConfig) -> Iterator[Problem]:
    """An advantage of single turns needs a policy gradient by turn, and nothing that imitates them beside."""
    if algorithm.void_turns != "negative":
        return
    if algorithm.name in PER_SEQUENCE:
        yield "algorithm.void_turns", f"{algorithm.name} has one advantage per sequence: set no_credit"
    if imitates_successes(algorithm) or algorithm.success_likelihood > 0:
        yield "algorithm.void_turns", "successes are imitated with their void turns: set no_credit"


def _ratio_problems(algorithm: AlgorithmConfig) -> Iterator[Problem]:
    """Of the importance ratio and its bounds."""
    if 0 < algorithm.dual_clip <= 1 + algorithm.clip_high:
        yield "algorithm.dual_clip", "must be above 1 + clip_high (3 is usual), or 0 for none"
    if algorithm.correction != "none" and algorithm.old_logprobs == "engine":
        yield (
            "algorithm.old_logprobs",
            "a ratio against the engine holds what a correction would weigh once more: set recomputed",
        )
    if algorithm.updates_per_batch > algorithm.groups_per_step:
        yield "algorithm.updates_per_batch", "at most algorithm.groups_per_step: a group is never split"


def ignores_age(algorithm: AlgorithmConfig) -> bool:
    """Whether nothing in the loss tells which policy sampled a token."""
    return algorithm.old_logprobs == "recomputed" and algorithm.correction == "none"


def imitates_successes(algorithm: AlgorithmConfig) -> bool:
    """Whether the batch holds own solved trajectories alone, as likelihood."""
    return algorithm.name == "rejection_fine_tuning"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
