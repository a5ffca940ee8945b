"""Copy an experiment's config, metrics and evaluations to another tracker."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.experiments.models import Experiment
from webapp.trackers.contract import TrackerError
from webapp.trackers.follow_experiment import follow
from webapp.trackers.registry import TRACKERS, sink_of

MAX_PICTURES = 50


class Command(BaseCommand):
    help = "Copy an experiment's numbers and pictures to another tracker, all there are or as they come."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("id", type=int, help="experiment")
        parser.add_argument(
            "--to",
            required=True,
            metavar="TRACKER=ADDRESS",
            help="e.g. " + ", ".join(f"{name}={tracker.address}" for name, tracker in TRACKERS.items()),
        )
        parser.add_argument(
            "--follow", type=float, metavar="SECONDS", help="look this often until the experiment has ended"
        )
        parser.add_argument(
            "--pictures", type=int, default=4, metavar="N", help="episodes shown of each evaluation; 0 = none"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        experiment = Experiment.objects.filter(pk=options["id"]).first()
        if experiment is None:
            raise CommandError(f"id: there is no experiment {options['id']}")
        if options["follow"] is not None and options["follow"] <= 0:
            raise CommandError("--follow: must be above 0 seconds")
        if not 0 <= options["pictures"] <= MAX_PICTURES:
            raise CommandError(f"--pictures: must be 0 to {MAX_PICTURES}")
        try:
            sink = sink_of(options["to"])
            sent = follow(experiment, sink, every_s=options["follow"], pictures=options["pictures"])
        except TrackerError as error:
            raise CommandError(str(error)) from error
        summary = f"sent to {options['to']}; points: {sent.points}, pictures: {sent.pictures}"
        self.stdout.write(f"experiment {experiment.pk}: {summary}")
