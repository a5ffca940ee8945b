"""Before this machine is taken away: its workers take nothing new, and what they run ends first."""

import socket
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.fleet.services.workers import drain_machine
from webapp.trajectories.models import RUNNING, Trajectory

LOOK_EVERY_S = 2.0


class Command(BaseCommand):
    help = "Have the workers of this machine take nothing new, and wait until they run nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=socket.gethostname(), help="its name on the fleet page")
        parser.add_argument("--limit", type=float, default=1800.0, help="seconds to wait at most")
        parser.add_argument("--off", action="store_true", help="take work again")

    def handle(self, *args: Any, **options: Any) -> None:
        host = options["host"]
        drain_machine(host=host, on=not options["off"])
        if options["off"]:
            return
        leaves_by = time.monotonic() + options["limit"]
        mine = Trajectory.objects.filter(worker__host=host, status__in=RUNNING)
        while left := mine.count():
            if time.monotonic() > leaves_by:
                raise CommandError(f"{host} still runs {left} trajectories; they are run again elsewhere")
            time.sleep(LOOK_EVERY_S)
        self.stdout.write(f"{host} is idle")
