"""Connects the pump to the changes that give it work."""

from typing import Any

from django.apps import AppConfig


class DispatcherConfig(AppConfig):
    name = "webapp.dispatcher"

    def ready(self) -> None:
        from webapp.trajectories.lifecycle.announcements import work_waiting

        work_waiting.connect(_pump, dispatch_uid="pump")


def _pump(**_signal: Any) -> None:
    from webapp.dispatcher.send_waiting import pump

    pump()
