"""Where a sweep stands, as JSON; with a verb: pause, resume or cancel the whole."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.experiments.models import Sweep
from webapp.sweeps.queries.summary import summary_of
from webapp.sweeps.services.sweeps import cancel_sweep, pause_sweep, resume_sweep

VERBS = {"pause": pause_sweep, "resume": resume_sweep, "cancel": cancel_sweep}


class Command(BaseCommand):
    help = "Print a sweep's status and arms as JSON; pause, resume or cancel it as a whole."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("id", type=int)
        parser.add_argument("verb", nargs="?", choices=sorted(VERBS))

    def handle(self, *args: Any, **options: Any) -> None:
        sweep = Sweep.objects.filter(pk=options["id"]).first()
        if sweep is None:
            raise CommandError(f"no sweep {options['id']}")
        if options["verb"] and not VERBS[options["verb"]](sweep=sweep):
            raise CommandError(f"cannot {options['verb']} a sweep that is {sweep.status}")
        self.stdout.write(json.dumps(summary_of(sweep), default=str))
