"""A token with which many machines join over HTTPS: of an autoscaler, an array of jobs, a class room."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.accounts.models import Team
from webapp.lib.host_links.joined_identity import ROLES
from webapp.worker_door.joined_hosts import joining


class Command(BaseCommand):
    help = "Make a token for a group of hosts and print it; list those that are still good, or end one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--roles", default="env", help=f"of {', '.join(ROLES)}; a comma between them")
        parser.add_argument("--hosts", type=int, default=0, help="how many may join; 0 = any number")
        parser.add_argument("--hours", type=float, default=24.0, help="how long it is good for")
        parser.add_argument("--team", default="", help="the only one that they work for; default: all")
        parser.add_argument("--list", action="store_true", help="tokens that are still good, by number")
        parser.add_argument("--end", type=int, metavar="NUMBER", help="let nothing join with this one")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["list"]:
            for one in joining.usable_tokens().order_by("pk"):
                until = one.expires_at.isoformat(timespec="minutes")
                count = f"{one.num_hosts} of {one.most_hosts or 'any number'}"
                self.stdout.write(
                    f"{one.pk}: {','.join(one.roles)}, {count}, until {until}, {one.team or 'all'}"
                )
            return
        if options["end"] is not None:
            if not joining.end_token(options["end"]):
                raise CommandError(f"--end {options['end']}: no such token is good any more")
            return
        self.stdout.write(self._made(options))

    def _made(self, options: dict[str, Any]) -> str:
        roles = list(dict.fromkeys(options["roles"].split(",")))
        if unknown := set(roles) - set(ROLES):
            raise CommandError(f"--roles {','.join(sorted(unknown))}: write {', '.join(ROLES)}")
        if options["hosts"] < 0 or not 0 < options["hours"] <= joining.LONGEST_HOURS:
            raise CommandError(f"--hosts: 0 or more; --hours: up to {joining.LONGEST_HOURS:.0f}")
        if not settings.HOSTS_URL:
            raise CommandError("this installation takes no hosts: set DESKHAND_HOSTS_ADDRESS")
        team = None
        if options["team"]:
            team = Team.objects.filter(name=options["team"]).first()
            if team is None:
                raise CommandError(f"--team {options['team']}: there is no such team")
        return joining.make_token(
            user=None, roles=roles, team=team, hours=options["hours"], most_hosts=options["hosts"] or None
        )
