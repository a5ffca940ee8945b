"""A file that is touched at each heartbeat: a container's health check looks how old it is."""

from pathlib import Path

from django.conf import settings


def touch_beat_file() -> None:
    """Nothing unless DESKHAND_BEAT_FILE names one."""
    if settings.BEAT_FILE:
        Path(settings.BEAT_FILE).touch()
