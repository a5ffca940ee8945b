"""What the dispatcher leaves of itself: that it was there."""

from datetime import timedelta

from django.db import models
from django.utils import timezone


class DispatcherBeat(models.Model):
    """When a dispatcher last finished a tick; one row."""

    at = models.DateTimeField()
    tick_s = models.FloatField(default=0)
    """The longest tick since the beat before."""

    def __str__(self) -> str:
        return f"dispatcher at {self.at:%H:%M:%S}"


THE_ROW = 1


def last_beat() -> tuple[timedelta, float] | None:
    """How long ago, and its longest tick in seconds; None when there was none yet."""
    row = DispatcherBeat.objects.filter(pk=THE_ROW).first()
    return (timezone.now() - row.at, row.tick_s) if row else None
