"""Tells the live pages who may read a team's inbox."""

from django.apps import AppConfig


class ReplayConfig(AppConfig):
    name = "webapp.replay"

    def ready(self) -> None:
        from webapp.accounts.models import Team
        from webapp.live.stream_access import register_owned

        register_owned("inbox", Team)
