"""Pre-flight: how long an experiment will take."""

from statistics import median

from django.template.defaultfilters import pluralize

from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Team
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.fleet.env_capacity import count_env_slots

TURNS_USED = 0.45
"""Part of the turn limit that a trajectory takes; this and the seconds: first-desk on two cores."""
SECONDS_PER_TURN = 0.35
SECONDS_PER_RESET = 0.1
SECONDS_PER_TRAINED_TRAJECTORY = 0.035
SECONDS_PER_SFT_STEP = 0.55
NUM_REMEMBERED = 5
"""Finished experiments of the same preset whose median duration is used."""
NUM_LOOKED_AT = 500
"""Trajectories that tell how many desktops an experiment had."""


def expected_duration(config: ExperimentConfig, *, team: Team, preset: str) -> tuple[float, str]:
    """Seconds and where they come from: finished experiments of this preset, else a rough formula.

    A finished one with other numbers of steps, tasks or desktops says how far the formula is off, not how
    long this one takes.
    """
    trained = team.experiments.exclude(config__evaluation__only=True)
    finished = trained.filter(
        preset=preset, status=ExperimentStatus.FINISHED, started_at__isnull=False, ended_at__isnull=False
    ).order_by("-id")
    slots = count_env_slots()
    guess = formula_seconds(config, slots)
    took = [
        (row.ended_at - row.started_at).total_seconds()
        * guess
        / formula_seconds(row.settings, desktops_used(row) or slots)
        for row in (finished[:NUM_REMEMBERED] if preset else [])
        if row.started_at and row.ended_at and not row.config_problems
    ]
    online = _online(slots, config.desktops.num_desktops)
    if took:
        basis = f"from {len(took)} finished experiment{pluralize(len(took))} of this preset"
        return median(took), basis + online
    return guess, "rough formula: turns on the desktops, then the optimiser" + online


def _online(slots: int, wanted: int) -> str:
    """What the estimate supposes of the desktops, where that is not plain."""
    if not slots:
        return f", once {wanted} desktop{pluralize(wanted)} {'is' if wanted == 1 else 'are'} online"
    return f", on {slots} of {wanted} desktops" if slots < wanted else ""


def desktops_used(experiment: Experiment) -> int:
    """On how many its first trajectories ran; 0 when that was not recorded."""
    first = experiment.trajectories.exclude(desktop=None).order_by("id")
    return len(set(first.values_list("desktop_id", flat=True)[:NUM_LOOKED_AT]))


def formula_seconds(config: ExperimentConfig, slots: int = 0) -> float:
    """Rollouts on all desktops at once, at most `slots` (0: as many as are wanted), plus the optimiser's."""
    algorithm, evaluation = config.algorithm, config.evaluation
    trained = algorithm.group_size * algorithm.groups_per_step * algorithm.num_steps
    during = algorithm.num_steps // evaluation.every if evaluation.every else 0
    per_task = sum(one.samples_per_task for one in config.evaluation_passes)
    evaluations = int(evaluation.before) + int(evaluation.after) + during
    evaluated = evaluation.num_tasks * per_task * evaluations
    one = config.desktops.max_turns * TURNS_USED * SECONDS_PER_TURN + SECONDS_PER_RESET
    rollouts = (
        (trained + evaluated) * one / min(config.desktops.num_desktops, slots or config.desktops.num_desktops)
    )
    sft = config.sft.max_steps * SECONDS_PER_SFT_STEP if config.sft.enabled else 0.0
    return rollouts + trained * SECONDS_PER_TRAINED_TRAJECTORY + sft
