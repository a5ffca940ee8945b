"""Stages of an experiment, as its trainer reports them."""

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from webapp.experiments.models import Experiment, Stage, StageStatus
from webapp.experiments.queries.streams import experiment_stream
from webapp.live.event_publishing import publish


@transaction.atomic
def start_stage(*, experiment_id: int, name: str, total: int, unit: str) -> None:
    """A stage begins (or begins again after a restart)."""
    values = {"status": StageStatus.RUNNING, "total": total, "unit": unit, "done": 0}
    stage, created = Stage.objects.get_or_create(
        experiment_id=experiment_id,
        name=name,
        defaults={**values, "position": 50, "started_at": timezone.now()},
    )
    if not created:
        Stage.objects.filter(pk=stage.pk).update(**values)
        Stage.objects.filter(pk=stage.pk, started_at=None).update(started_at=timezone.now())
    Experiment.objects.filter(pk=experiment_id).update(stage=name)
    publish(experiment_stream(experiment_id), "stage.started", {"stage": name, "total": total, "unit": unit})


@transaction.atomic
def finish_stage(*, experiment_id: int, name: str) -> None:
    Stage.objects.filter(experiment_id=experiment_id, name=name).update(
        status=StageStatus.FINISHED, ended_at=timezone.now(), done=F("total")
    )
    publish(experiment_stream(experiment_id), "stage.finished", {"stage": name})


@transaction.atomic
def record_progress(*, experiment_id: int, stage: str, done: int, total: int) -> None:
    """How far the running stage is."""
    Stage.objects.filter(experiment_id=experiment_id, name=stage).update(done=done, total=total)
    publish(
        experiment_stream(experiment_id), "stage.progressed", {"stage": stage, "done": done, "total": total}
    )
