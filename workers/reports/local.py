"""Reports of a worker of the installation's own: the server's functions, called in this process."""

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from django.db import transaction

from training.untrusted.packed_texts import packed
from webapp.lib.database_pool import give_back_connection
from webapp.lib.outage_retries import patiently
from webapp.lib.remote_calls import call_of
from webapp.trajectories import live_pictures
from webapp.trajectories.services import frames, texts
from webapp.worker_door.trajectories import TrajectoryNow, beat_trajectories, look_at
from workers.desktops.frame import Frame

P = ParamSpec("P")
T = TypeVar("T")


class LocalReports:
    """The database is at hand."""

    is_joined = False

    def report(self, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        patiently(function, *args, **kwargs)

    def report_with_screen(
        self, team_id: int, frame: Frame, function: Callable[P, None], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        blobs = {sha256: packed(text) for sha256, text in frame.texts.blobs.items()}

        def record() -> None:
            for shown in frame.pictures:
                frames.write_files(shown.png, shown.image(), shown.sha256)
            for sha256, body in blobs.items():
                texts.write_text(body, sha256)
            with transaction.atomic():
                for shown in frame.pictures:
                    frames.record_frame(team_id, shown.image(), shown.sha256)
                for sha256, body in blobs.items():
                    texts.record_text(team_id, sha256, len(body))
                function(*args, **kwargs)

        patiently(record)

    def request(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if call_of(function).is_patient:
            return patiently(function, *args, **kwargs)
        try:
            return function(*args, **kwargs)
        finally:
            give_back_connection()

    def show_screen(self, trajectory_id: int, index: int, frame: Frame) -> None:
        live_pictures.show_screen(
            trajectory_id=trajectory_id,
            index=index,
            sha256=frame.sha256,
            png=frame.png,
            image=frame.image(),
            observed_at=frame.taken_at,
        )

    def beat_trajectories(self, running: Sequence[int]) -> None:
        if running:
            self.request(beat_trajectories, list(running))

    def trajectory_now(self, trajectory_id: int) -> TrajectoryNow:
        return self.request(look_at, [trajectory_id]).get(trajectory_id, TrajectoryNow())
