"""Waiting experiments become jobs of the gpu workers that the placement decision chose."""

import logging

from django.db.models import QuerySet
from kombu.exceptions import OperationalError

from webapp.experiments.models import Experiment, ExperimentStatus
from webapp.experiments.placement.decision import decide
from webapp.experiments.placement.pool import Assignment
from webapp.experiments.placement.pool_state import gpu_workers, read_pool
from webapp.experiments.queries.attempts import next_attempt_number
from webapp.experiments.services.placements import (
    free_placement,
    free_unclaimed_placements,
    place_experiment,
    record_passes,
)
from webapp.lib.send_job import RUN_EXPERIMENT, send_job
from webapp.lib.statements.short_statements import compiled, first_row

log = logging.getLogger(__name__)


def place_experiments() -> int:
    """Send what fits now; returns how many were sent."""
    if first_row(*compiled(_queued)) is None:
        return 0
    free_unclaimed_placements()
    pool = read_pool(gpu_workers())
    if not pool.waiting:
        return 0
    decision = decide(pool)
    sent = sum(map(_send, decision.assignments))
    if sent:
        record_passes(decision)
    return sent


def _queued() -> QuerySet[Experiment, int]:
    """Those that wait, or whose job may have to be taken back; most ticks end without one."""
    return Experiment.objects.filter(status=ExperimentStatus.QUEUED).values_list("pk", flat=True)[:1]


def _send(given: Assignment) -> bool:
    if not place_experiment(given):
        return False
    try:
        send_job(RUN_EXPERIMENT, given.pk, next_attempt_number(given.pk), only=given.worker)
    except OperationalError as error:
        log.warning("cannot send experiment %s, it stays queued: %s", given.pk, error)
        free_placement(given.pk)
        return False
    return True
