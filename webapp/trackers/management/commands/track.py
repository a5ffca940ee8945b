"""Copy an experiment's config, metrics and evaluations to another tracker."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.experiments.models import Experiment
from webapp.trackers.contract import TrackerError
from webapp.trackers.follow_experiment import follow
from webapp.trackers.sinks import SINKS, sink_of


class Command(BaseCommand):
    help = "Copy an experiment's numbers to another tracker, all there are or as they come."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("id", type=int, help="experiment")
        parser.add_argument(
            "--to",
            required=True,
            metavar="TRACKER=ADDRESS",
            help=f"{', '.join(SINKS)}; e.g. tensorboard=runs, mlflow=http://localhost:5000, wandb=runs",
        )
        parser.add_argument(
            "--follow", type=float, metavar="SECONDS", help="look this often until the experiment has ended"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        experiment = Experiment.objects.filter(pk=options["id"]).first()
        if experiment is None:
            raise CommandError(f"id: there is no experiment {options['id']}")
        if options["follow"] is not None and options["follow"] <= 0:
            raise CommandError("--follow: must be above 0 seconds")
        try:
            sent = follow(experiment, sink_of(options["to"]), every_s=options["follow"])
        except TrackerError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"experiment {experiment.pk}: {sent} points sent to {options['to']}")
