"""The age of heartbeats: rows whose time was not written for a while, and the file of a health check."""

from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q
from django.utils import timezone


def silent_for(limit: timedelta, field: str = "heartbeat_at") -> Q:
    """Rows whose `field` was not written for `limit`.

    A time as far ahead as that was written before the clock was set back: nothing was heard since, and
    waiting until the clock has come there again would take the hours that it was set back by.
    """
    now = timezone.now()
    return Q((f"{field}__lt", now - limit)) | Q((f"{field}__gt", now + limit))


def touch_beat_file() -> None:
    """At each heartbeat that was recorded: a container's health check looks how old DESKHAND_BEAT_FILE is."""
    if settings.BEAT_FILE:
        Path(settings.BEAT_FILE).touch()
