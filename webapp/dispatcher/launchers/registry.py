"""Which launcher DESKHAND_GPU_LAUNCHER names."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from webapp.dispatcher.launchers.contract import Launcher

LAUNCHERS = {"slurm": "webapp.dispatcher.launchers.slurm.launcher.Slurm"}
"""Name -> class; imported where it is used."""


@cache
def launcher() -> Launcher | None:
    """None where gpu workers wait for work themselves."""
    path = LAUNCHERS.get(settings.GPU_LAUNCHER)
    return import_string(path)() if path else None
