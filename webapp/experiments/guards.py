"""What is known of the trainer's guards: what people call them, what each watches, and what explains it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GuardInfo:
    title: str
    metric: str = ""
    """Series that it watches; one that ends with "/" is an area, "" = none."""
    brought_about_by: tuple[str, ...] = ()
    """Guards that, when they fire, explain this one; the likeliest first."""
    is_share: bool = False
    """Its value and limit are shares. The series cannot say it: a guard may count steps of one."""


GUARDS: dict[str, GuardInfo] = {
    "errored_trajectories": GuardInfo("Errored trajectories", "rollout/errored_rate", is_share=True),
    "logprob_drift": GuardInfo("Drift after weight syncs", "sync/drift"),
    "untrainable_trajectories": GuardInfo("Untrainable trajectories", "dropped/", ("logprob_drift",)),
    "logprob_gap": GuardInfo("Engine and trainer disagree", "policy/logprob_gap", ("logprob_drift",)),
    "grad_norm_explosion": GuardInfo(
        "Exploding gradient", "optimiser/grad_norm", ("logprob_drift", "logprob_gap")
    ),
    "entropy_collapse": GuardInfo(
        "Entropy collapse", "loss/entropy", ("grad_norm_explosion",), is_share=True
    ),
    "parse_collapse": GuardInfo(
        "Parse collapse",
        "rollout/parse_error_rate",
        ("logprob_drift", "grad_norm_explosion", "entropy_collapse"),
        is_share=True,
    ),
    "truncation": GuardInfo("Truncation", "rollout/truncation_rate", ("parse_collapse",), is_share=True),
    "endless_successes": GuardInfo("Solves, but does not stop", "rollout/solved_at_limit", is_share=True),
    "all_zero_rewards": GuardInfo(
        "No success", "rollout/success", ("parse_collapse", "truncation", "entropy_collapse")
    ),
    "no_update": GuardInfo(
        "No update", "rollout/zero_variance_fraction", ("parse_collapse", "truncation", "entropy_collapse")
    ),
    "settled": GuardInfo("Settled policy", "loss/entropy", ("entropy_collapse",)),
    "saturated_term": GuardInfo(
        "Saturated reward term",
        "reward/",
        ("parse_collapse", "truncation", "entropy_collapse"),
        is_share=True,
    ),
    "zero_variance": GuardInfo(
        "Groups without variance",
        "rollout/zero_variance_fraction",
        (
            "parse_collapse",
            "truncation",
            "entropy_collapse",
            "all_zero_rewards",
            "no_update",
            "settled",
            "saturated_term",
        ),
        is_share=True,
    ),
    "rolled_back": GuardInfo(
        "Went back to a checkpoint",
        brought_about_by=("parse_collapse", "entropy_collapse", "grad_norm_explosion"),
    ),
    "stale_checkpoint": GuardInfo("Stale checkpoint"),
}
"""Name -> guard, causes before their effects: the order in which pages show alarms."""


def guard_of(name: str) -> GuardInfo:
    """A guard that this version does not know has its name alone."""
    return GUARDS.get(name, GuardInfo(name.replace("_", " ").capitalize()))
