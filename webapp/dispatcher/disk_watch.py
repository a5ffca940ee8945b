"""Tells the log and the open pages of experiments when a disk has too little room, and when it has again."""

import logging

from webapp.experiments.models import FINAL_STATUSES, Experiment, ExperimentStatus
from webapp.experiments.services.statuses import publish_status
from webapp.lib.disk_room import shortages

log = logging.getLogger(__name__)


class DiskWatch:
    """What was reported last."""

    def __init__(self) -> None:
        self._short: frozenset[str] = frozenset()

    def is_short(self) -> bool:
        """Whether new experiments have to wait; a change is reported."""
        found = shortages()
        short = frozenset(shortage.kept for shortage in found)
        if short != self._short:
            if found:
                log.warning("new work waits for disk space: %s", "; ".join(map(str, found)))
            else:
                log.info("there is room on the disks again: work goes on")
            self._tell_pages()
            self._short = short
        return bool(short)

    @staticmethod
    def _tell_pages() -> None:
        """Their header shows what is missing; it is rendered anew when its experiment is updated."""
        rows = Experiment.objects.exclude(status__in=FINAL_STATUSES).values_list("pk", "status", "message")
        for experiment_id, status, message in rows:
            publish_status(experiment_id, ExperimentStatus(status), message)
