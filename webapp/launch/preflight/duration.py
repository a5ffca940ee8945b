"""Pre-flight: how long an experiment will take, and how long at most."""

from dataclasses import dataclass
from statistics import median

from training.contracts.config import ExperimentConfig
from training.contracts.number_text import counted, plural
from training.contracts.stage_names import StageName, stages_of
from webapp.accounts.models import Team
from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.fleet.queries.env_capacity import count_env_slots

TURNS_USED = 0.45
"""Part of the turn limit that a trajectory takes; this and the seconds: first-desk on two cores."""
SECONDS_PER_TURN = 0.35
SECONDS_PER_RESET = 0.1
SECONDS_PER_TRAINED_TRAJECTORY = 0.035
SECONDS_PER_SFT_STEP = 0.55
SECONDS_AROUND = 27.0
"""Before the first stage and after the last one: processes, model and checkpoint."""
NUM_REMEMBERED = 5
"""Finished experiments of the same preset whose median pace is used."""
NUM_LOOKED_AT = 500
"""Trajectories that tell how many desktops an experiment had."""
ALIKE = 3.0
"""Experiments whose work differs by no more than this factor say more than others."""
MARGIN = 1.25
"""What the slowest pace so far may be exceeded by."""
MARGIN_UNKNOWN = 3.0
"""The same where no pace of this installation is known yet."""
SPREAD, SPREAD_OF_ONE = 1.2, 1.5
"""How far the next run may lie outside of the paces so far, and outside of a single one."""


@dataclass(frozen=True, slots=True)
class Duration:
    """An estimate with its bound."""

    seconds: float
    at_most: float
    """When every trajectory runs into its turn limit, at the slowest pace so far with a margin, and nothing
    crashes."""
    basis: str
    """Where they come from, in words."""
    low: float
    high: float
    """Between which most runs end."""


def expected_duration(config: ExperimentConfig, *, team: Team, preset: str) -> Duration:
    """From finished experiments of this preset, of about this size if there are any, else a rough formula.

    A finished one with other numbers of steps, tasks or desktops says how far the formula is off, not how
    long this one takes.
    """
    slots = count_env_slots()
    guess, limit = formula_seconds(config, slots), formula_seconds(config, slots, turns_used=1.0)
    online = _online(slots, config.desktops.num_desktops)
    paces = _paces(team, preset, guess, slots)
    if not paces:
        basis = "rough formula: turns on the desktops, then the optimiser"
        return Duration(
            guess, limit * MARGIN_UNKNOWN, basis + online, guess / MARGIN_UNKNOWN, guess * MARGIN_UNKNOWN
        )
    basis = f"from {counted(len(paces), 'finished experiment')} of this preset"
    spread = SPREAD if len(paces) > 1 else SPREAD_OF_ONE
    low, high = min(paces) * guess / spread, max(paces) * guess * spread
    return Duration(median(paces) * guess, max(paces) * limit * MARGIN, basis + online, low, high)


def _paces(team: Team, preset: str, guess: float, slots: int) -> list[float]:
    """Of finished experiments, how much longer than the formula says they took."""
    if not preset:
        return []
    trained = team.experiments.filter(is_sample=False).exclude(config__evaluation__only=True)
    finished = trained.filter(
        preset=preset, status=ExperimentStatus.FINISHED, started_at__isnull=False, ended_at__isnull=False
    ).order_by("-id")
    found = [
        (formula_seconds(row.settings, desktops_used(row) or slots), (row.ended_at - row.started_at))
        for row in finished[:NUM_REMEMBERED]
        if row.started_at and row.ended_at and not row.config_problems
    ]
    alike = [(formula, took) for formula, took in found if 1 / ALIKE <= formula / guess <= ALIKE]
    return [took.total_seconds() / formula for formula, took in alike or found]


def _online(slots: int, wanted: int) -> str:
    """What the estimate supposes of the desktops, where that is not plain."""
    if not slots:
        return f", once {counted(wanted, 'desktop')} {plural(wanted, 'is', 'are')} online"
    return f", on {slots} of {wanted} desktops" if slots < wanted else ""


def desktops_used(experiment: Experiment) -> int:
    """On how many its first trajectories ran; 0 when that was not recorded."""
    first = experiment.trajectories.exclude(desktop=None).order_by("id")
    return len(set(first.values_list("desktop_id", flat=True)[:NUM_LOOKED_AT]))


def formula_seconds(config: ExperimentConfig, slots: int = 0, *, turns_used: float = TURNS_USED) -> float:
    """All stages and what is around them, on at most `slots` desktops (0: as many as are wanted)."""
    return SECONDS_AROUND + sum(stage_seconds(config, slots, turns_used=turns_used).values())


def stage_seconds(
    config: ExperimentConfig, slots: int = 0, *, turns_used: float = TURNS_USED
) -> dict[StageName, float]:
    """Of every stage that will run: rollouts on all desktops at once, plus the optimiser's time."""
    algorithm, evaluation = config.algorithm, config.evaluation
    per_step = algorithm.group_size * algorithm.groups_per_step
    extra = algorithm.group_size * algorithm.max_extra_groups if turns_used >= 1 else 0
    during = algorithm.num_steps // evaluation.every if evaluation.every else 0
    evaluated = evaluation.num_tasks * sum(one.samples_per_task for one in config.evaluation_passes)
    one = config.desktops.max_turns * turns_used * SECONDS_PER_TURN + SECONDS_PER_RESET
    each = one / min(config.desktops.num_desktops, slots or config.desktops.num_desktops)
    rollouts = algorithm.num_steps * (per_step + extra) + during * evaluated
    trained = algorithm.num_steps * per_step * SECONDS_PER_TRAINED_TRAJECTORY
    known = {
        StageName.SFT: config.sft.max_steps * SECONDS_PER_SFT_STEP,
        StageName.EVALUATION_BEFORE: evaluated * each,
        StageName.GRPO: rollouts * each + trained,
        StageName.EVALUATION_AFTER: evaluated * each,
    }
    return {stage: known.get(stage, 0.0) for stage in stages_of(config)}
