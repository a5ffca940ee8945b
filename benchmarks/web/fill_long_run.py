"""One long experiment: 5 000 steps of 40 metrics, 1 000 checkpoints, alarms, a log of a million lines."""

from __future__ import annotations

from random import Random

from training.contracts.trainer_reports import Alarm, StepAlarms
from webapp.experiments.log_files import log_folder
from webapp.experiments.models import CheckpointRecord, Experiment, MetricPoint
from webapp.experiments.services.alarms import record_alarms

NUM_STEPS = 5000
NAMES = (
    "rollout/success",
    "rollout/parse_error_rate",
    "loss/entropy",
    "optimiser/grad_norm",
    *(f"time/part_{number}_s" for number in range(36)),
)
NUM_CHECKPOINTS = 1000
NUM_LINES = 1_000_000
LINE = "2026-11-22 22:00:00 INFO step {}: reward 0.312 success 41 % entropy 0.812 grad 1.21 rollout 12.1 s\n"
BATCH = 5000


def fill_long_run(experiment: Experiment) -> None:
    """What an experiment has after days of training; its trajectories stay as they are."""
    random = Random(3)
    MetricPoint.objects.filter(experiment=experiment).delete()
    MetricPoint.objects.bulk_create(
        (
            MetricPoint(experiment=experiment, name=name, step=step, value=random.random())
            for step in range(1, NUM_STEPS + 1)
            for name in NAMES
        ),
        batch_size=BATCH,
    )
    CheckpointRecord.objects.bulk_create(
        CheckpointRecord(
            experiment=experiment, step=5 * number, policy_version=number, path=f"/none/{number}"
        )
        for number in range(1, NUM_CHECKPOINTS + 1)
    )
    for name in ("parse_collapse", "truncation", "zero_variance"):
        fired = Alarm(name=name, step=10, value=0.9, limit=0.3, message="Too many", remedy="Fewer")
        record_alarms(experiment_id=experiment.pk, report=StepAlarms(step=10, alarms=(fired,)))
    folder = log_folder(experiment.pk)
    folder.mkdir(parents=True)
    with (folder / "trainer-1.log").open("w") as log:
        log.writelines(LINE.format(number) for number in range(NUM_LINES))
        log.write("RuntimeError: the last line of a long log\n")


def long_run_pages(experiment: Experiment) -> dict[str, str]:
    """Name -> path."""
    page = f"/experiments/{experiment.pk}/"
    return {
        "long run, overview": page,
        "long run, groups": f"{page}?tab=groups&purpose=train&step=5-15",
        "long run, trajectories of steps": f"/trajectories/?experiment={experiment.pk}&step=5-15",
        "long run, alarm": f"{page}alarms/parse_collapse/",
        "long run, log": f"{page}log/?file=trainer-1.log",
        "first error of a million lines": f"{page}log/?file=trainer-1.log&at=first-error",
        "metrics, 5000 steps x 40": f"{page}metrics/",
    }
