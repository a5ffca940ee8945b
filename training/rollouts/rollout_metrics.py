"""Numbers about the trajectories of a step, named area/name."""

from collections.abc import Sequence

from training.batch.advantages import GroupAdvantages, mean_and_std
from training.contracts.outcome import Outcome, is_solved, outcome_of, succeeded
from training.contracts.types import Group, Trajectory, TrajectoryStatus, Turn


def rollout_metrics(groups: Sequence[Group], advantages: Sequence[GroupAdvantages]) -> dict[str, float]:
    """rollout/*, success/FAMILY, reward/TERM and advantage/std of the groups as the desktops returned them.

    `groups`: before any injection. `advantages`: of the groups that had two valid members.
    """
    members = [member for group in groups for member in group.trajectories]
    scored = [member for group in groups for member in group.scored()]
    turns = [turn for member in scored for turn in member.turns]
    rewards = [float(member.reward or 0.0) for member in scored]
    values = [value for group in advantages for value in group.advantages.values()]
    outcomes = [outcome_of(member.status, member.score) for member in scored]
    truncated = sum(member.status is TrajectoryStatus.TRUNCATED for member in scored)
    errored = sum(member.status is TrajectoryStatus.ERRORED for member in members)
    flat = [group for group in advantages if group.has_zero_variance]
    return {
        "rollout/num_trajectories": float(len(scored)),
        "rollout/reward_mean": mean(rewards),
        "rollout/reward_std_in_group": mean([group.std for group in advantages]),
        "rollout/success": mean([float(succeeded(member.score)) for member in scored]),
        "rollout/solved": share(outcomes.count(Outcome.SOLVED), len(scored)),
        "rollout/solved_at_limit": share(outcomes.count(Outcome.SOLVED_AT_LIMIT), len(scored)),
        "rollout/zero_variance_fraction": share(len(flat), len(advantages)),
        "rollout/dropped_groups": float(len(groups) - len(advantages)),
        "rollout/turns_mean": mean([float(len(member.turns)) for member in scored]),
        "rollout/completion_tokens_mean": mean([float(_num_tokens(turn)) for turn in turns]),
        "rollout/parse_error_rate": share(sum(turn.parse_error is not None for turn in turns), len(turns)),
        "rollout/truncation_rate": share(truncated, len(scored)),
        "rollout/errored_rate": share(errored, len(members)),
        "advantage/std": mean_and_std(values)[1],
        **_per_family(groups),
        **_per_term(scored),
    }


def _num_tokens(turn: Turn) -> int:
    return len(turn.completion.token_ids) if turn.completion is not None else 0


def _per_family(groups: Sequence[Group]) -> dict[str, float]:
    wins: dict[str, list[float]] = {}
    for group in groups:
        for member in group.scored():
            is_win = is_solved(member.status, member.score)
            wins.setdefault(group.task.family or "all", []).append(float(is_win))
    return {f"success/{family}": mean(values) for family, values in sorted(wins.items())}


def _per_term(scored: Sequence[Trajectory]) -> dict[str, float]:
    """Mean contribution of every trajectory-level reward term."""
    sums: dict[str, float] = {}
    for member in scored:
        for term in member.terms:
            sums[term.name] = sums.get(term.name, 0.0) + term.contribution
    return {f"reward/{name}": total / len(scored) for name, total in sorted(sums.items())}


def mean(values: Sequence[float]) -> float:
    """0 for none."""
    return sum(values) / len(values) if values else 0.0


def share(part: int, whole: int) -> float:
    """0 of nothing is 0."""
    return part / whole if whole else 0.0
