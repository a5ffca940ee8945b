"""Tells the live pages who may read the streams of experiments."""

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "webapp.experiments"

    def ready(self) -> None:
        from webapp.experiments.models import Experiment
        from webapp.live.stream_access import register_owned

        register_owned("experiment", Experiment)
