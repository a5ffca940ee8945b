"""What the pages know of the trainer's guards: where each one shows, and what usually brings it about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webapp.experiments.models import AlarmRecord, AlarmStatus

LATEST_CAUSE_STEPS = 2
"""A cause may cross its limit this many steps after what it brings about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardInfo:
    """One guard of the trainer."""

    title: str
    metric: str = ""
    """Series that it watches; one that ends with "/" is an area, "" = none."""
    brought_about_by: tuple[str, ...] = ()
    """Guards that, when they fire, explain this one; the likeliest first."""


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
    "saturated_term": GuardInfo(title="Saturated reward term", metric="reward/"),
    "zero_variance": GuardInfo(
        title="Groups without variance",
        metric="rollout/zero_variance_fraction",
        brought_about_by=(
            "parse_collapse",
            "truncation",
            "entropy_collapse",
            "all_zero_rewards",
            "saturated_term",
        ),
    ),
    "rolled_back": GuardInfo(
        title="Went back to a checkpoint",
        brought_about_by=("parse_collapse", "entropy_collapse", "grad_norm_explosion"),
    ),
    "stale_checkpoint": GuardInfo(title="Stale checkpoint"),
}
"""Name -> guard, causes before what they bring about: the order in which pages show alarms."""
PLACES = {name: place for place, name in enumerate(GUARDS)}


def guard_of(alarm: AlarmRecord) -> GuardInfo:
    """A guard that this version does not know has its name alone."""
    return GUARDS.get(alarm.name, GuardInfo(title=alarm.name.replace("_", " ").capitalize()))


def causes_first(alarms: Iterable[AlarmRecord]) -> list[AlarmRecord]:
    """Active ones first; among these, causes before what they bring about."""
    return sorted(
        alarms,
        key=lambda alarm: (alarm.status != AlarmStatus.ACTIVE, PLACES.get(alarm.name, len(PLACES))),
    )


def likely_cause(alarm: AlarmRecord, alarms: Sequence[AlarmRecord]) -> AlarmRecord | None:
    """The alarm at the root of this one, which fired about when it began; None when it is a root itself."""
    by_name = {other.name: other for other in alarms}
    for name in guard_of(alarm).brought_about_by:
        cause = by_name.get(name)
        if cause is not None and _explains(cause, alarm):
            return likely_cause(cause, alarms) or cause
    return None


def brought_about(cause: AlarmRecord, alarms: Sequence[AlarmRecord]) -> list[AlarmRecord]:
    """The alarms that `cause` is the likely cause of."""
    return [alarm for alarm in alarms if likely_cause(alarm, alarms) == cause]


def _explains(cause: AlarmRecord, alarm: AlarmRecord) -> bool:
    """It began before the other did, or hardly later, and still fired then."""
    return cause.since_step <= alarm.since_step + LATEST_CAUSE_STEPS and cause.step >= alarm.since_step
