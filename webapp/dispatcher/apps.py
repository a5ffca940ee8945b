"""Fills free slots whenever something may have to be sent."""

import logging
from typing import Any

from django.apps import AppConfig
from django.db import OperationalError

log = logging.getLogger(__name__)


class DispatcherConfig(AppConfig):
    name = "webapp.dispatcher"

    def ready(self) -> None:
        from webapp.trajectories.services.announcements import work_waiting

        work_waiting.connect(_fill_free_slots, dispatch_uid="fill_free_slots")


def _fill_free_slots(*, slot_given_back: bool, **_signal: Any) -> None:
    """The work is committed: an error here must not reach its writer, who would do it again."""
    from webapp.dispatcher.services.waiting_trajectories import fill_free_slots

    try:
        fill_free_slots(only_many=slot_given_back)
    except OperationalError as error:
        log.warning("nothing sent now, the dispatcher's next tick does it: %s", error)
