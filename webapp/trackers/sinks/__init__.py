"""Trackers by name: `NAME=ADDRESS` of the command line -> a sink."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from webapp.trackers.contract import Sink, TrackerError

SINKS = {
    "tensorboard": ("tensorboard_files", "TensorboardFiles", "tensorboard"),
    "mlflow": ("mlflow_server", "MlflowServer", "mlflow-skinny"),
    "wandb": ("wandb_files", "WandbFiles", "wandb"),
    "trackio": ("trackio_server", "TrackioServer", "httpx"),
}
"""name -> (module, class, package that has to be installed)"""


def sink_of(text: str) -> Sink:
    """The sink of `NAME=ADDRESS`. Raises TrackerError that names what is missing."""
    name, _, address = text.partition("=")
    if name not in SINKS or not address:
        raise TrackerError(f"{text}: expected {' or '.join(f'{known}=ADDRESS' for known in SINKS)}")
    module, maker, package = SINKS[name]
    try:
        make: Callable[[str], Sink] = getattr(import_module(f"{__name__}.{module}"), maker)
    except ImportError as error:
        raise TrackerError(f"{name}: {error}; install it with: .venv/bin/pip install {package}") from error
    return make(address)
