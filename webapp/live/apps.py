"""Loads every application's `partials` module, which registers what live events are drawn with."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class LiveConfig(AppConfig):
    name = "webapp.live"

    def ready(self) -> None:
        autodiscover_modules("live_partials")
