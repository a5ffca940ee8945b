"""Measure what turns of a trajectory were worth, by continuations of the policy from before and after them.

.venv/bin/python manage.py measure_credit 812 --turns 3 4 --size 8 --seconds 900
"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.trajectories.models import Trajectory
from webapp.trajectories.queries.branches import BranchRefused
from webapp.trajectories.services.credit_measures import measure_turns


class Command(BaseCommand):
    help = "Queue continuations that measure what turns of a trajectory were worth, as its page shows."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("trajectory", type=int)
        parser.add_argument("--turns", type=int, nargs="+", required=True, help="from 1, as pages count them")
        parser.add_argument("--size", type=int, default=8, help="continuations from each state")
        parser.add_argument("--seconds", type=float, default=900.0, help="desktop-seconds at most")

    def handle(self, *_: Any, **options: Any) -> None:
        trajectory = Trajectory.objects.filter(pk=options["trajectory"]).first()
        if trajectory is None:
            raise CommandError(f"trajectory: there is none with the number {options['trajectory']}")
        if min(options["turns"]) < 1:
            raise CommandError("--turns: turns are counted from 1")
        turns = [turn - 1 for turn in options["turns"]]
        try:
            found = measure_turns(
                trajectory=trajectory, turns=turns, size=options["size"], budget_s=options["seconds"]
            )
        except BranchRefused as refused:
            raise CommandError(f"{refused.field}: {refused}") from refused
        self.stdout.write(
            f"{len(found.groups)} groups of {options['size']} are queued, about {found.desktop_s:.0f} "
            "desktop-seconds"
        )
        if found.left_out:
            states = ", ".join(str(state + 1) for state in found.left_out)
            self.stdout.write(f"no room in the budget for the state before turn {states}")
