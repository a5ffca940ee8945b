"""Where an experiment stands, as JSON; with a verb: pause, resume or cancel it."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.experiments import services
from webapp.experiments.models import Experiment

VERBS = {
    "pause": services.request_pause,
    "resume": services.resume_experiment,
    "cancel": services.request_cancel,
}


class Command(BaseCommand):
    help = "Print an experiment's status as JSON, or pause, resume or cancel it."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("id", type=int)
        parser.add_argument("verb", nargs="?", choices=sorted(VERBS))

    def handle(self, *args: Any, **options: Any) -> None:
        experiment = Experiment.objects.filter(pk=options["id"]).first()
        if experiment is None:
            raise CommandError(f"no experiment {options['id']}")
        if options["verb"] and not VERBS[options["verb"]](experiment=experiment):
            raise CommandError(f"cannot {options['verb']} an experiment that is {experiment.status}")
        experiment.refresh_from_db()
        self.stdout.write(json.dumps(describe(experiment), default=str))


def describe(experiment: Experiment) -> dict[str, Any]:
    """Status, stages, evaluations and metrics of an experiment in plain values."""
    return {
        "id": experiment.pk,
        "name": experiment.name,
        "status": experiment.status,
        "message": experiment.message,
        "step": experiment.step,
        "policy_version": experiment.policy_version,
        "created_at": experiment.created_at,
        "started_at": experiment.started_at,
        "ended_at": experiment.ended_at,
        "stages": list(experiment.stages.values("name", "status", "done", "total", "started_at", "ended_at")),
        "evaluations": list(
            experiment.evaluations.values(
                "name", "step", "num_tasks", "num_success", "success", "low", "high", "per_family"
            )
        ),
        "alarms": list(experiment.alarms.values("name", "step", "value", "message")),
        "incidents": list(experiment.incidents.values("kind", "message", "at")),
        "attempts": list(experiment.attempts.values("number", "status", "reason", "resumed_step")),
    }
