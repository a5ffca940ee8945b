"""What a sweep will take, for the pre-flight panel."""

from dataclasses import dataclass

from webapp.experiments.sweep_plan import SweepPlan
from webapp.fleet.models import Worker, WorkerStatus


@dataclass(frozen=True, slots=True)
class SweepForecast:
    """Of the whole, when no arm is stopped early."""

    plan: SweepPlan
    worker_seconds: float
    """All experiments one after the other."""
    num_workers: int
    seconds: float
    """On the gpu workers that are online, as many at a time as the sweep may use; at least one."""


def sweep_forecast(plan: SweepPlan, seconds_each: float) -> SweepForecast:
    """From the expected seconds of one experiment."""
    online = Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE, is_draining=False).count()
    at_once = max(1, min(online, plan.arms_at_once * plan.num_seeds))
    rounds = -(-plan.num_experiments // at_once)
    return SweepForecast(plan, plan.num_experiments * seconds_each, at_once, rounds * seconds_each)
