"""TensorBoard: an event file in ADDRESS/experiment-ID, by the package tensorboard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from training.untrusted.pictures import open_picture
from webapp.trackers.contract import Picture, Point, TrackedRun, TrackerError

PREFIX = "events.out.tfevents"
RGB = 3


class TensorboardFiles:
    """Each call of the command writes the run's file anew, so that nothing stands there twice."""

    def __init__(self, address: str) -> None:
        self._root = Path(address).expanduser()
        self._writer: EventFileWriter | None = None

    def begin(self, run: TrackedRun) -> None:
        folder = self._root / f"experiment-{run.experiment_id}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for old in folder.glob(f"{PREFIX}*"):
                old.unlink()
            self._writer = EventFileWriter(str(folder))
        except OSError as error:
            raise TrackerError(f"tensorboard: {folder} cannot be written: {error.strerror}") from error
        text = json.dumps({"name": run.name, **run.tags, **run.config}, indent=2)
        self._write(Event(step=0, summary=Summary(value=[_text("config", f"```\n{text}\n```")])))

    def send(self, points: Sequence[Point]) -> None:
        for point in points:
            value = Summary.Value(tag=point.name, simple_value=point.value)
            event = Event(step=point.step, wall_time=point.at.timestamp(), summary=Summary(value=[value]))
            self._write(event)
        self._flush()

    def show(self, pictures: Sequence[Picture]) -> None:
        for picture in pictures:
            width, height = open_picture(picture.jpeg).size
            encoded = Summary.Image(
                height=height, width=width, colorspace=RGB, encoded_image_string=picture.jpeg
            )
            summary_metadata = SummaryMetadata(summary_description=picture.caption)
            value = Summary.Value(tag=picture.name, image=encoded, metadata=summary_metadata)
            event = Event(step=picture.step, wall_time=picture.at.timestamp(), summary=Summary(value=[value]))
            self._write(event)
        self._flush()

    def end(self, status: str) -> None:
        self._write(Event(step=0, summary=Summary(value=[_text("status", status)])))
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _write(self, event: Event) -> None:
        assert self._writer is not None, "begin comes first"
        self._writer.add_event(event)

    def _flush(self) -> None:
        assert self._writer is not None, "begin comes first"
        try:
            self._writer.flush()
        except OSError as error:
            raise TrackerError(f"tensorboard: {self._root} cannot be written: {error.strerror}") from error


def _text(tag: str, text: str) -> Summary.Value:
    plugin = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    return Summary.Value(
        tag=tag, metadata=plugin, tensor=TensorProto(dtype=DT_STRING, string_val=[text.encode()])
    )
