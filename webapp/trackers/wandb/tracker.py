"""Weights & Biases, offline: a run's folder below ADDRESS for `wandb sync`, by the package wandb."""

import shutil
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import wandb

from training.untrusted.pictures import open_picture
from webapp.trackers.contract import Picture, Point, TrackedRun, TrackerError

PROJECT = "deskhand"
SETTINGS = wandb.Settings(
    console="off", silent=True, disable_code=True, disable_git=True, x_disable_stats=True, x_disable_meta=True
)
"""Nothing of this process and machine: the run was somewhere else."""
STEP = "step"
"""The series that others are drawn over: W&B's own step only rises, a resumed attempt's goes back."""


class WandbFiles:
    """Each call of the command writes the run's folder anew, so that nothing stands there twice."""

    def __init__(self, address: str) -> None:
        self._root = Path(address).expanduser().absolute()
        self._run: wandb.Run | None = None

    def begin(self, run: TrackedRun) -> None:
        name = f"experiment-{run.experiment_id}"
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            for old in self._root.glob(f"wandb/offline-run-*-{name}"):
                shutil.rmtree(old)
            # It would write to a folder of its choice where this one cannot be written.
            (self._root / "wandb").mkdir(exist_ok=True)
            self._run = wandb.init(
                project=PROJECT,
                dir=self._root,
                mode="offline",
                id=name,
                name=run.name,
                config={**run.tags, **run.config},
                settings=SETTINGS,
            )
        except (OSError, wandb.Error) as error:
            raise TrackerError(f"wandb: {self._root} cannot be written: {error}") from error
        self._run.define_metric("*", step_metric=STEP)

    def send(self, points: Sequence[Point]) -> None:
        assert self._run is not None, "begin comes first"
        try:
            for step, found in groupby(points, key=lambda point: point.step):
                self._run.log({STEP: step, **{point.name: point.value for point in found}})
        except (OSError, wandb.Error) as error:
            raise TrackerError(f"wandb: {self._root}: {error}") from error

    def show(self, pictures: Sequence[Picture]) -> None:
        assert self._run is not None, "begin comes first"
        try:
            for picture in pictures:
                screens = open_picture(picture.jpeg)
                image = wandb.Image(screens, caption=picture.caption, file_type="jpg")
                self._run.log({STEP: picture.step, picture.name: image})
        except (OSError, wandb.Error) as error:
            raise TrackerError(f"wandb: {self._root}: {error}") from error

    def end(self, status: str) -> None:
        assert self._run is not None, "begin comes first"
        try:
            self._run.summary["deskhand.status"] = status
            self._run.finish(exit_code=int(status == "failed"))
            wandb.teardown()  # finish answers before wandb's service has written the end of the file
        except (OSError, wandb.Error) as error:
            raise TrackerError(f"wandb: {self._root}: {error}") from error
