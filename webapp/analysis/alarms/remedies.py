"""What to change in a clone after an alarm, and the checkpoint from which the clone goes on.

The change follows from when the trouble began. Before the first update the optimiser cannot have caused it;
with an update it did, whatever the completions look like. A setting that is far from its preset's goes back
first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db.models import Count, Q

from training.contracts.config import ConfigError, ExperimentConfig, parse_config
from training.contracts.types import Limit
from webapp.analysis.alarms.evidence import Evidence, evidence_of
from webapp.analysis.alarms.onset import Onset, fall_of_success, onset_of_alarm
from webapp.analysis.alarms.suspect_settings import Suspect, suspect_of
from webapp.experiments.knob_values import flatten, nested
from webapp.experiments.knobs import Knob, as_text, knobs
from webapp.experiments.models import AlarmRecord, CheckpointRecord, Experiment
from webapp.experiments.queries.checkpoints import made_in_sft

MOSTLY = 0.5
"""Share of the unparsable turns that a token limit must have cut off before it is called the cause."""

Changes = dict[str, Any]
"""Dotted name of a knob -> its new value."""
CURRICULUM: Changes = {"tasks.curriculum": "solve_rate"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnsetFacts:
    """What the trajectories of the onset say of the remedy."""

    limit: str = ""
    """The `Limit` that truncated most of them."""
    cut_off_share: float = 0.0
    """Of their unparsable turns, those that the limit of completion tokens ended."""
    is_of_the_start: bool = True
    """Before the first update."""
    has_fallen: bool = False
    """Success fell far below its best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A clone that is likely to do without the alarm."""

    changes: dict[str, str]
    """Dotted name of a knob -> its text; empty when no knob mends it."""
    checkpoint: CheckpointRecord | None
    """The newest one that is kept from before the onset; None = the clone starts at the beginning."""

    def knob_changes(self, config: ExperimentConfig) -> list[tuple[Knob, str, str]]:
        """(knob, the config's text, the remedy's text), in form order."""
        values = flatten(config)
        changed = [knob for knob in knobs() if knob.path in self.changes]
        return [(knob, values[knob.path], self.changes[knob.path]) for knob in changed]


def slower(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    """Half the learning rates that are in use."""
    optimiser = config.optimiser
    changes: Changes = {"optimiser.learning_rate": optimiser.learning_rate / 2}
    if optimiser.name == "muon":
        changes["optimiser.muon_learning_rate"] = optimiser.muon_learning_rate / 2
    return changes


def _explore(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    bonus = config.algorithm.entropy_coefficient
    return slower(config, facts) | {"algorithm.entropy_coefficient": min(1.0, 2 * bonus or 0.001)}


def _clip_more(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    return slower(config, facts) | {"optimiser.max_grad_norm": config.optimiser.max_grad_norm / 2}


def _parse(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    if not facts.is_of_the_start:
        return slower(config, facts)
    if facts.cut_off_share > MOSTLY:
        return {"sampling.max_completion_tokens": min(8192, 2 * config.sampling.max_completion_tokens)}
    return {"sft.enabled": True}


def _raise_limit(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    """A task's own limit has no knob."""
    if not facts.is_of_the_start:
        return slower(config, facts)
    by_limit: dict[str, Changes] = {
        Limit.TURNS: {"desktops.max_turns": min(200, 2 * config.desktops.max_turns)},
        Limit.TOKENS: {"sampling.max_context_tokens": 2 * config.sampling.max_context_tokens},
        Limit.TIME: {"desktops.trajectory_timeout_s": 2 * config.desktops.trajectory_timeout_s},
    }
    return by_limit.get(facts.limit, {})


def _more_variance(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    """Groups of a policy that is as good as ever are alike by its tasks, whatever the optimiser did."""
    if not facts.is_of_the_start and facts.has_fallen:
        return slower(config, facts)
    size = min(128, 2 * config.algorithm.group_size)
    return CURRICULUM | {"algorithm.group_size": size}


def _use_successes(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    if not facts.is_of_the_start:
        return slower(config, facts)
    if config.replay.enabled:  # it found no success to inject
        return {"sft.enabled": True, "sft.source": "oracle"}
    uses = max(config.replay.max_uses, config.algorithm.num_steps)
    return {"replay.enabled": True, "replay.injection": "advantage", "replay.max_uses": uses} | CURRICULUM


def _compare_again(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    """What the policy is sure of is mended by no reward: demonstrations of it, doubt, and other tasks."""
    bonus = {"algorithm.entropy_coefficient": min(1.0, 2 * config.algorithm.entropy_coefficient or 0.001)}
    return CURRICULUM | bonus | {"replay.enabled": True}


def _other_reward(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    return {"rewards.preset": "task-score.v1", "rewards.definition": None}


def _fewer_desktops(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    return {"desktops.num_desktops": max(1, config.desktops.num_desktops // 2)}


def _same_numbers(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    """The same numbers in engine and trainer; where they have them, finer ones."""
    same: Changes = {"engine.dtype": "model", "model.fp32_logits": True}
    if (config.engine.dtype, config.model.fp32_logits) == ("model", True):
        return {"model.dtype": "float32"}
    return same


def _fresher(config: ExperimentConfig, facts: OnsetFacts) -> Changes:
    if config.algorithm.max_staleness:
        return {"algorithm.max_staleness": config.algorithm.max_staleness // 2}
    return _same_numbers(config, facts)


REMEDIES: dict[str, Callable[[ExperimentConfig, OnsetFacts], Changes]] = {
    "errored_trajectories": _fewer_desktops,
    "logprob_drift": _same_numbers,
    "logprob_gap": _fresher,
    "grad_norm_explosion": _clip_more,
    "entropy_collapse": _explore,
    "parse_collapse": _parse,
    "truncation": _raise_limit,
    "all_zero_rewards": _use_successes,
    "no_update": _use_successes,
    "settled": _compare_again,
    "saturated_term": _other_reward,
    "zero_variance": _more_variance,
    "rolled_back": slower,
}
"""Guards without a row are mended by no knob."""


OF_MACHINES = {"errored_trajectories", "logprob_drift", "logprob_gap"}
"""Guards that look at hosts and engines: no setting of the preset's is suspected."""
BY_TRAJECTORIES = {"parse_collapse", "truncation"}
"""Guards whose remedy depends on what the trajectories of the onset say."""


def remedy_of(alarm: AlarmRecord) -> Remedy:
    """The knobs that change, and where the clone starts."""
    onset = onset_of_alarm(alarm)
    start = checkpoint_before(alarm.experiment, alarm.since_step, alarm.since_at)
    has_fallen = alarm.name == "zero_variance" and fall_of_success(alarm.experiment) is not None
    return Remedy(changes=changes_for(alarm, onset, has_fallen=has_fallen), checkpoint=start)


def changes_for(alarm: AlarmRecord, onset: Onset, *, has_fallen: bool = False) -> dict[str, str]:
    """The knobs that change, with their texts; empty when no knob mends it. `has_fallen`: success did."""
    experiment = alarm.experiment
    if alarm.name not in REMEDIES:
        return {}
    if alarm.name not in OF_MACHINES:
        suspect = suspect_of(experiment, before_updates=onset.is_of_the_start)
        if changes := set_back(experiment, suspect):
            return changes
    evidence = evidence_of(alarm) if alarm.name in BY_TRAJECTORIES else None
    facts = replace(_facts_of(evidence), is_of_the_start=onset.is_of_the_start, has_fallen=has_fallen)
    return changes_in(experiment.settings, REMEDIES[alarm.name](experiment.settings, facts))


def set_back(experiment: Experiment, suspect: Suspect | None) -> dict[str, str]:
    """The suspicious setting as the preset or parent has it; empty without a suspect."""
    changes = {suspect.knob.path: suspect.other} if suspect else {}
    return changes if _is_valid(experiment.settings, changes) else {}


def changes_in(config: ExperimentConfig, found: Changes) -> dict[str, str]:
    """Knob -> text of what differs from the config; empty where the form would refuse it."""
    changes = {path: as_text(value) for path, value in found.items() if value != attrgetter(path)(config)}
    return changes if _is_valid(config, changes) else {}


def note_of(alarm: AlarmRecord) -> str:
    """Of the clone, why there is one."""
    return f"Remedy of “{alarm.guard.title}” since step {alarm.since_step} of #{alarm.experiment_id}"


def _is_valid(config: ExperimentConfig, changes: dict[str, str]) -> bool:
    """Some knobs exclude each other: a remedy that the form would refuse is none."""
    try:
        parse_config(nested(flatten(config) | changes))
    except ConfigError:
        return False
    return True


def _facts_of(evidence: Evidence | None) -> OnsetFacts:
    rows = evidence.trajectories if evidence else ()
    if not rows:
        return OnsetFacts()
    limits = [row.limit for row in rows if row.limit]
    limit = max(sorted(set(limits)), key=limits.count, default="")
    turns = rows[0].turns.model.objects.filter(trajectory__in=[row.pk for row in rows])
    counts = turns.exclude(parse_error="").aggregate(
        total=Count("id"), cut_off=Count("id", filter=Q(completion__finish_reason="length"))
    )
    return OnsetFacts(limit=limit, cut_off_share=counts["cut_off"] / max(1, counts["total"]))


def checkpoint_before(
    experiment: Experiment, step: int, at: datetime | None = None
) -> CheckpointRecord | None:
    """The newest one on disk whose weights did not bring the trouble of a step about.

    The rollouts of step S come from weights with S - 1 finished steps: these are suspect, too.
    """
    kept = experiment.checkpoints.filter(deleted_at=None)
    if at is not None:
        kept = kept.filter(created_at__lt=at)
    return kept.filter(made_in_sft() | Q(step__lt=step - 1)).order_by("-id").first()
