"""`manage.py grant_secret NAME TEAM [URL ...]`: which team may use a secret, and where it may be sent."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from training.outgoing.secret_grants import FILE, GrantError, add_grant
from webapp.accounts.models import AuditAction, Team
from webapp.accounts.services.audit_log import log_action


class Command(BaseCommand):
    help = "Let a team's experiments use a secret, and send it to URLs that begin so."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("secret")
        parser.add_argument("team")
        parser.add_argument("urls", nargs="*", metavar="URL")

    def handle(self, *args: Any, **options: Any) -> None:
        team = Team.objects.filter(name=options["team"]).first()
        if team is None:
            known = ", ".join(Team.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"there is no team {options['team']!r}; known: {known}")
        try:
            grant = add_grant(
                settings.SECRETS_DIR, secret=options["secret"], team=options["team"], urls=options["urls"]
            )
        except GrantError as error:
            raise CommandError(str(error)) from error
        secret, urls = options["secret"], options["urls"]
        log_action(
            AuditAction.SECRET_GRANTED, person=None, team=team, kind="secret", object_id=secret, urls=urls
        )
        where = ", ".join(grant.urls) or "nowhere; it is no token of a URL"
        self.stdout.write(f"{options['secret']}: teams {', '.join(grant.teams)}; sent to {where}  ({FILE})")
