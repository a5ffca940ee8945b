"""Sample runs to look around in: `manage.py seed_demo`, and `--delete`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webapp.accounts.models import Team
from webapp.samples.services.deletion import delete_samples
from webapp.samples.services.samples import seed


class Command(BaseCommand):
    help = "Give a team sample runs (a second call changes nothing), or delete them."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--team", help="name of the team; default: the first one")
        parser.add_argument("--delete", action="store_true", help="delete the samples instead")

    def handle(self, *args: Any, **options: Any) -> None:
        named = Team.objects.filter(name=options["team"]) if options["team"] else Team.objects.order_by("pk")
        team = named.first()
        if team is None:
            raise CommandError(f"--team: there is no team {options['team'] or 'at all; run make up first'}")
        if options["delete"]:
            self.stdout.write(f"{delete_samples(team=team)} sample experiments of {team} deleted")
            return
        found = seed(team=team)
        self.stdout.write(f"{team}: sample experiments {found.finished.pk} and {found.failed.pk}")
