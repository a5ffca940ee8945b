"""The guard of experiments whose trajectories all error: it pauses them instead of repeating without end.

Every place of a group is tried again, and every group asked for again: bounded each, but hundreds together,
and the trainer waits meanwhile, so that none of its own guards ever looks.
"""

from collections import Counter

from django.db import transaction

from training.contracts.trainer_reports import Alarm
from training.contracts.types import Source, TrajectoryStatus
from webapp.experiments.models import Experiment
from webapp.experiments.services.alarms import raise_alarm
from webapp.experiments.services.experiments import request_pause
from webapp.experiments.services.statuses import record_incident
from webapp.trajectories.models import Trajectory

NAME = "nothing_scored"
TRIES_PER_DESKTOP = 3
"""A host that dies takes a trajectory of each of its desktops at once, which is no reason to pause."""
MAX_ERROR = 300
REMEDIES = {
    "no_policy": "No policy server answers: read the gpu worker's policy log.",
    "policy_server": (
        "The desktops cannot reach the policy server, or it refuses: read the policy log, and on several "
        "hosts see that its address can be reached from them."
    ),
    "setup": "The set-up of the tasks fails: open an errored trajectory, and run `manage.py verify_tasks`.",
    "evaluator": "The evaluators of the tasks fail: open an errored trajectory for the reason.",
    "reward": "An expression of the reward has no value: try the preset in the reward lab, and mend it.",
    "worker_lost": "Env workers die or do not answer: see the fleet page and their logs.",
}
OTHER = "Open an errored trajectory for the whole reason, and see the desktops on the fleet page."


def pause_if_nothing_is_scored(trajectory: Trajectory) -> bool:
    """Called when `trajectory` has errored: True when its experiment was asked to pause."""
    experiment = trajectory.experiment
    if experiment is None or not (limit := _limit(experiment)):
        return False
    newest = _newest(trajectory, limit)
    if len(newest) < limit or any(status != TrajectoryStatus.ERRORED for status, _, _ in newest):
        return False
    kind, number = Counter(kind for _, kind, _ in newest).most_common(1)[0]
    error = next(error for _, own, error in newest if own == kind)
    message = f"None of the last {limit} trajectories was scored. {number} of them: {error[:MAX_ERROR]}"
    if not request_pause(experiment=experiment, reason=message):
        return False
    remedy = REMEDIES.get(kind, OTHER)
    alarm = Alarm(
        name=NAME,
        step=experiment.step,
        value=limit,
        limit=limit,
        message=message,
        remedy=f"{remedy} Then resume: it goes on from its last checkpoint.",
        severity="critical",
    )
    with transaction.atomic():
        raise_alarm(experiment.pk, alarm)
    record_incident(experiment.pk, NAME, f"Paused by itself. {message}")
    return True


def _limit(experiment: Experiment) -> int:
    """Errored trajectories in a row that pause it; 0 = never."""
    settings = experiment.settings
    wanted = settings.alarms.unscored_in_a_row
    return max(wanted, TRIES_PER_DESKTOP * settings.desktops.num_desktops) if wanted else 0


def _newest(trajectory: Trajectory, number: int) -> list[tuple[str, str, str]]:
    """(status, kind, error) of the newest of this attempt that came to an end by themselves."""
    ended = (TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED, TrajectoryStatus.ERRORED)
    rows = Trajectory.objects.filter(
        experiment=trajectory.experiment, group__attempt=trajectory.group.attempt, status__in=ended
    ).exclude(source=Source.HUMAN)
    return list(rows.order_by("-id").values_list("status", "error_kind", "error")[:number])
