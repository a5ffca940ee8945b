"""Advantages and samples of one group: what of it is trained on, and with which weight. Rank 0 only."""

from dataclasses import replace

from training.batch.advantages import BranchRewards, GroupAdvantages, SharedStates, group_advantages
from training.batch.reward_control import controlled_rewards
from training.batch.samples import Sample, build_samples, has_behaviour_logprobs
from training.batch.void_turns import TurnCredit, credit_of_turns
from training.contracts.config import ExperimentConfig, ReplayConfig
from training.contracts.config.algorithm import imitates_successes
from training.contracts.config.reward_presets import reward_range
from training.contracts.outcome import is_solved
from training.contracts.screen_state import states_of_members
from training.contracts.types import Group, Trajectory, TrajectoryStatus
from training.render.renderer import Renderer
from training.rollouts.untrainable import LeftOut, Reason, Untrainable, check_lengths


def true_rewards(group: Group) -> dict[int, float]:
    """trajectory_id -> reward of the scored members."""
    return {member.trajectory_id: float(member.reward or 0.0) for member in group.scored()}


def _trained_rewards(group: Group, config: ExperimentConfig) -> dict[int, float]:
    """What advantages are made of: other than the true ones only in a control run."""
    return controlled_rewards(
        true_rewards(group),
        config.algorithm.reward_control,
        seed=config.optimiser.seed,
        group_id=group.group_id,
    )


def advantages_of(
    group: Group, rewards: dict[int, float], config: ExperimentConfig
) -> GroupAdvantages | None:
    algorithm = config.algorithm
    return group_advantages(
        rewards,
        scale=algorithm.scale_advantages,
        baseline=algorithm.baseline,
        num_turns={member.trajectory_id: len(member.turns) for member in group.scored()},
        discount=algorithm.turn_discount,
        floor=algorithm.least_deviation * reward_range(config.rewards),
        states=None if algorithm.credit == "trajectory" else states_of(group, config),
    )


def states_of(group: Group, config: ExperimentConfig) -> SharedStates:
    """What the group's members saw, and what was measured by branches of them."""
    shows_screen = config.prompt.shows_screen
    return SharedStates(
        of_turns=states_of_members(
            {member.trajectory_id: member.turns for member in group.scored()}, shows_screen=shows_screen
        ),
        least_visits=config.algorithm.least_visits,
        branches=[_rewards_of(branch) for branch in group.branches if branch.scored()],
    )


def _rewards_of(branch: Group) -> BranchRewards:
    assert branch.parent_id is not None
    num_turns = {member.trajectory_id: len(member.turns) for member in branch.scored()}
    return BranchRewards(
        parent=branch.parent_id, turn=branch.branch_turn, rewards=true_rewards(branch), num_turns=num_turns
    )


def trained_advantages(group: Group, config: ExperimentConfig) -> GroupAdvantages | None:
    return advantages_of(group, _trained_rewards(group, config), config)


def teaches(result: GroupAdvantages | None, config: ExperimentConfig) -> bool:
    """Whether a group with these advantages enters the loss."""
    if result is None:
        return False
    if imitates_successes(config.algorithm):
        return True  # a group of successes alone has targets like any other
    return not (result.has_zero_variance and config.algorithm.skip_zero_variance)


def trained_samples(
    group: Group, renderer: Renderer, config: ExperimentConfig, left_out: LeftOut
) -> tuple[GroupAdvantages | None, list[Sample]]:
    """Advantages and samples of a group; without each member that turns out to be untrainable."""
    while True:
        result = _with_bounded_entries(trained_advantages(group, config), group, config.replay)
        if result is None:
            return None, []
        try:
            return result, [
                sample
                for part in (group, *group.branches)
                for member in part.scored()
                if is_trainable(member) and not _is_left_out(member, config)
                for sample in left_out.seen(_samples(member, part.branch_turn, result, renderer, config))
            ]
        except Untrainable as error:
            left_out.add(error)
            group = left_out.without(group)


def samples_beside(
    entry: Trajectory, renderer: Renderer, config: ExperimentConfig, left_out: LeftOut
) -> list[Sample]:
    """Of a replay entry that is imitated beside its group; none when it turns out to be untrainable."""
    algorithm = config.algorithm
    credit = credit_of_turns(entry, 0.0, (), algorithm, is_flat=False, is_imitated=True)
    try:
        found = left_out.seen(_built(entry, 0.0, credit, renderer, config))
    except Untrainable as error:
        left_out.add(error)
        return []
    weight = config.replay.likelihood_weight  # no group gives it an advantage to weigh by
    return [replace(one, as_likelihood=True, likelihood_weight=weight) for one in found]


def _samples(
    member: Trajectory, first: int, result: GroupAdvantages, renderer: Renderer, config: ExperimentConfig
) -> list[Sample]:
    """`first`: the turns before are another trajectory's, and trained there. Raises Untrainable."""
    advantage = result.advantages[member.trajectory_id]
    credit = credit_of_turns(
        member,
        advantage,
        result.turns.get(member.trajectory_id, ()),
        config.algorithm,
        is_flat=not teaches(result, config),
    )
    credit = replace(credit, trained=credit.trained - set(range(first)))
    samples = _built(member, advantage, credit, renderer, config)
    if imitates_successes(config.algorithm):
        return [replace(sample, as_likelihood=True, likelihood_weight=1.0) for sample in samples]
    weight = _imitation_weight(member, config)
    return [replace(sample, imitation_weight=weight) for sample in samples]


def _built(
    member: Trajectory, advantage: float, credit: TurnCredit, renderer: Renderer, config: ExperimentConfig
) -> list[Sample]:
    """Raises Untrainable."""
    if not credit.trained:
        return []
    try:
        samples = build_samples(
            member,
            renderer,
            advantage=advantage,
            turn_advantages=credit.advantages,
            trained_turns=credit.trained,
            likelihood_weight=_likelihood_weight(advantage, config.replay),
            merge_size=renderer.merge,
            image_token_id=renderer.image_pad_id,
        )
    except ValueError as error:
        raise Untrainable(member.trajectory_id, Reason.OTHER_CONTEXT, str(error)) from error
    check_lengths(samples, config.sampling.max_context_tokens)
    return samples


def _with_bounded_entries(
    result: GroupAdvantages | None, group: Group, replay: ReplayConfig
) -> GroupAdvantages | None:
    """No injected entry weighs more than `replay.max_advantage`."""
    most = replay.max_advantage
    entries = {one.trajectory_id for one in group.scored() if one.replay_entry_id is not None}
    if result is None or not most or not entries:
        return result
    turns = {
        key: tuple(min(value, most) for value in row) if key in entries else row
        for key, row in result.turns.items()
    }
    advantages = {
        key: min(value, most) if key in entries else value for key, value in result.advantages.items()
    }
    return replace(result, advantages=advantages, turns=turns)


def _likelihood_weight(advantage: float, replay: ReplayConfig) -> float:
    """Of an entry without logprobs: at ratio 1, A grad(ratio) is A grad(lp), so A is the weight."""
    return max(0.0, advantage) if replay.injection == "advantage" else replay.likelihood_weight


def _is_left_out(member: Trajectory, config: ExperimentConfig) -> bool:
    """Rejected, since the agent did not solve and end it; or, own and ended by a limit, masked as overlong.

    To imitate what reached the state and went on until a limit teaches never to stop.
    """
    if imitates_successes(config.algorithm) and not is_solved(member.status, member.score):
        return True
    is_cut = member.status is TrajectoryStatus.TRUNCATED and member.replay_entry_id is None
    return is_cut and config.algorithm.mask_truncated


def _imitation_weight(member: Trajectory, config: ExperimentConfig) -> float:
    """SFT on success: what the policy solved and ended itself; replay entries have their own weight."""
    is_own_success = member.replay_entry_id is None and is_solved(member.status, member.score)
    return config.algorithm.success_likelihood if is_own_success else 0.0


def is_trainable(member: Trajectory) -> bool:
    """True for a replay entry and for a fully recorded trajectory.

    A fresh trajectory with a turn that was never completed (its time ran out) counts in the group,
    but it must not be imitated like a person's.
    """
    return bool(member.turns) and (member.replay_entry_id is not None or has_behaviour_logprobs(member))
