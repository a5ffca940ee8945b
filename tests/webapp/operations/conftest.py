"""One row of everything that figures are made of."""

from datetime import timedelta

import pytest
from django.utils import timezone

from testing.factories import make_experiment, make_group, make_trajectory
from testing.fleet_rows import make_desktop, make_host, make_sample, make_worker
from webapp.dispatcher.services.beat import beat
from webapp.experiments.models import AlarmRecord, Attempt, AttemptStatus, Experiment, GpuSample, MetricPoint
from webapp.fleet.models import Worker

MB = 1 << 20
GPU = {"name": "H200", "memory_bytes": 141_000 * MB, "free_bytes": 141_000 * MB}


@pytest.fixture
def running(db) -> Experiment:
    """An experiment at step 3 that holds one of two GPUs, with what else an installation has."""
    now = timezone.now()
    beat(0.2)
    experiment = make_experiment(step=3, placed_worker="gpu@h1", placed_keys=["GPU-a"])
    for name, value in (("time/step_s", 12.5), ("rollout/reward_mean", 0.4), ("rollout/success", 0.5)):
        MetricPoint.objects.create(experiment=experiment, name=name, step=2, value=99)
        MetricPoint.objects.create(experiment=experiment, name=name, step=3, value=value)
    looks = [{"index": 0, "utilisation": 0.75, "memory_bytes": 7 * MB}]
    GpuSample.objects.create(experiment=experiment, attempt=1, at=now, gpus=looks)
    attempt = Attempt.objects.create(
        experiment=experiment, number=1, worker_name="gpu@h1", status=AttemptStatus.RUNNING, num_gpus=1
    )
    Attempt.objects.filter(pk=attempt.pk).update(started_at=now - timedelta(minutes=30))
    AlarmRecord.objects.create(
        experiment=experiment, name="no_success", severity="warning", step=3, value=0, limit=1
    )
    make_worker()
    make_worker("env2@h1", slots=8)
    Worker.objects.filter(name="env2@h1").update(is_draining=True)
    make_worker("gpu@h1", queue="gpu")
    gpus = [{"index": number, "uuid": f"GPU-{letter}", **GPU} for number, letter in enumerate("ab")]
    Worker.objects.filter(name="gpu@h1").update(gpus=gpus)
    host = make_host(num_resets=40, num_failures=2, reset_p50_s=0.1, reset_p99_s=0.4, cpu_percent=50)
    make_sample(host, now, ready=1, leased=3, reset_p50_s=0.1, reset_p99_s=0.4)
    make_desktop(phase="leased")
    make_desktop("d2", phase="ready")
    group = make_group(experiment=experiment, size=4)
    make_trajectory(group=group, turns=3)
    make_trajectory(group=group, turns=0, status="errored", error_kind="policy_server")
    make_trajectory(group=group, turns=1, status="running")
    make_trajectory(group=group, turns=0, status="queued")
    make_trajectory(group=group, turns=0, status="queued", sent_at=now)
    return experiment
