"""Beats for the experiment that this worker holds, whatever its main thread is at.

Making a model, loading weights or a busy machine may keep the main thread for longer than the dispatcher's
patience; only a process that is gone or stands still shall be taken for lost.
"""

from webapp.worker_door.attempts import HeldAttempt, beat_attempt
from workers.reports.current import reports
from workers.reports.repeated_step import RepeatedStep

EVERY_S = 2.0


class Heartbeat(RepeatedStep):
    """A thread that beats until the end of the `with` block, or until the attempt was taken away."""

    def __init__(self, attempt: HeldAttempt) -> None:
        super().__init__("experiment-heartbeat", self._beat, EVERY_S)
        self._attempt = attempt

    def _beat(self) -> None:
        if not reports().request(beat_attempt, self._attempt.pk).is_current:
            self.stopping.set()
