"""Has the dispatcher do what the rules say."""

from django.apps import AppConfig


class RetentionConfig(AppConfig):
    name = "webapp.retention"

    def ready(self) -> None:
        from webapp.dispatcher.upkeep import register
        from webapp.retention.services.pruning import scheduled

        register(scheduled)
