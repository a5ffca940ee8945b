"""What is known of the trainer's guards: what people call them, what each watches, and what explains it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardInfo:
    """One guard of the trainer."""

    title: str
    metric: str = ""
    """Series that it watches; one that ends with "/" is an area, "" = none."""
    brought_about_by: tuple[str, ...] = ()
    """Guards that, when they fire, explain this one; the likeliest first."""

    @property
    def is_share(self) -> bool:
        """Whether what it watches is a share of 1."""
        return self.metric.endswith(("_rate", "_fraction"))


GUARDS: dict[str, GuardInfo] = {
    "errored_trajectories": GuardInfo(title="Errored trajectories", metric="rollout/errored_rate"),
    "logprob_drift": GuardInfo(title="Drift after weight syncs", metric="sync/drift"),
    "untrainable_trajectories": GuardInfo(
        title="Untrainable trajectories", metric="dropped/", brought_about_by=("logprob_drift",)
    ),
    "logprob_gap": GuardInfo(
        title="Engine and trainer disagree", metric="policy/logprob_gap", brought_about_by=("logprob_drift",)
    ),
    "grad_norm_explosion": GuardInfo(
        title="Exploding gradient",
        metric="optimiser/grad_norm",
        brought_about_by=("logprob_drift", "logprob_gap"),
    ),
    "entropy_collapse": GuardInfo(
        title="Entropy collapse", metric="loss/entropy", brought_about_by=("grad_norm_explosion",)
    ),
    "parse_collapse": GuardInfo(
        title="Parse collapse",
        metric="rollout/parse_error_rate",
        brought_about_by=("logprob_drift", "grad_norm_explosion", "entropy_collapse"),
    ),
    "truncation": GuardInfo(
        title="Truncation", metric="rollout/truncation_rate", brought_about_by=("parse_collapse",)
    ),
    "all_zero_rewards": GuardInfo(
        title="No success",
        metric="rollout/success",
        brought_about_by=("parse_collapse", "truncation", "entropy_collapse"),
    ),
    "no_update": GuardInfo(
        title="No update",
        metric="rollout/zero_variance_fraction",
        brought_about_by=("parse_collapse", "truncation", "entropy_collapse"),
    ),
    "settled": GuardInfo(
        title="Settled policy", metric="loss/entropy", brought_about_by=("entropy_collapse",)
    ),
    "saturated_term": GuardInfo(title="Saturated reward term", metric="reward/"),
    "zero_variance": GuardInfo(
        title="Groups without variance",
        metric="rollout/zero_variance_fraction",
        brought_about_by=(
            "parse_collapse",
            "truncation",
            "entropy_collapse",
            "all_zero_rewards",
            "no_update",
            "settled",
            "saturated_term",
        ),
    ),
    "rolled_back": GuardInfo(
        title="Went back to a checkpoint",
        brought_about_by=("parse_collapse", "entropy_collapse", "grad_norm_explosion"),
    ),
    "stale_checkpoint": GuardInfo(title="Stale checkpoint"),
}
"""Name -> guard, causes before their effects: the order in which pages show alarms."""


def guard_of(name: str) -> GuardInfo:
    """A guard that this version does not know has its name alone."""
    return GUARDS.get(name, GuardInfo(title=name.replace("_", " ").capitalize()))
