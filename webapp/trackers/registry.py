"""Trackers by name: `NAME=ADDRESS` of the command line -> a sink.

Rows import late: a tracker's package is there only where it is used.
"""

from collections.abc import Callable
from dataclasses import dataclass

from webapp.trackers.contract import Sink, TrackerError

Maker = Callable[[str], Sink]
"""From the address."""


@dataclass(frozen=True, slots=True)
class Tracker:
    load: Callable[[], Maker]
    package: str
    """What has to be installed."""
    address: str
    """An example."""


def _mlflow() -> Maker:
    from webapp.trackers.mlflow.tracker import MlflowServer

    return MlflowServer


def _wandb() -> Maker:
    from webapp.trackers.wandb.tracker import WandbFiles

    return WandbFiles


TRACKERS = {
    "mlflow": Tracker(_mlflow, "mlflow-skinny", "http://localhost:5000"),
    "wandb": Tracker(_wandb, "wandb", "runs"),
}


def sink_of(text: str) -> Sink:
    """The sink of `NAME=ADDRESS`. Raises TrackerError that names what is missing."""
    name, _, address = text.partition("=")
    if name not in TRACKERS or not address:
        raise TrackerError(f"{text}: expected {' or '.join(f'{known}=ADDRESS' for known in TRACKERS)}")
    tracker = TRACKERS[name]
    try:
        make = tracker.load()
    except ImportError as error:
        remedy = f"install it with: .venv/bin/pip install {tracker.package}"
        raise TrackerError(f"{name}: {error}; {remedy}") from error
    return make(address)
