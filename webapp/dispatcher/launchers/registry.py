"""Which launcher DESKHAND_GPU_LAUNCHER names."""

from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from webapp.dispatcher.launchers.contract import Launcher, LauncherError

LAUNCHERS = {
    "kubernetes": "webapp.dispatcher.launchers.kubernetes.launcher.Kubernetes",
    "slurm": "webapp.dispatcher.launchers.slurm.launcher.Slurm",
}
"""Name -> class; imported where it is used."""


@cache
def launcher() -> Launcher | None:
    """None where gpu workers wait for work themselves. Raises LauncherError."""
    path = LAUNCHERS.get(settings.GPU_LAUNCHER)
    try:
        return import_string(path)() if path else None
    except ModuleNotFoundError as error:
        raise LauncherError(
            f"DESKHAND_GPU_LAUNCHER: {settings.GPU_LAUNCHER} needs its client: "
            f".venv/bin/pip install -r requirements/{settings.GPU_LAUNCHER}.txt ({error})"
        ) from error
