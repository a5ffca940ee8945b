"""Fills free slots whenever something may have to be sent."""

from typing import Any

from django.apps import AppConfig


class DispatcherConfig(AppConfig):
    name = "webapp.dispatcher"

    def ready(self) -> None:
        from webapp.trajectories.lifecycle.announcements import work_waiting

        work_waiting.connect(_fill_free_slots, dispatch_uid="fill_free_slots")


def _fill_free_slots(**_signal: Any) -> None:
    from webapp.dispatcher.send_waiting import fill_free_slots

    fill_free_slots()
