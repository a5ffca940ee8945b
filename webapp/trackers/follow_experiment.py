"""An experiment's numbers, from its first to its last, to a sink."""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q

from training.contracts.number_text import counted
from webapp.experiments.models import Evaluation, Experiment, ExperimentStatus, MetricPoint
from webapp.lib.media.errors import StorageAway
from webapp.trackers.contract import Picture, Point, Sink, TrackedRun
from webapp.trajectories.models import Trajectory
from webapp.trajectories.pictures.strips import screens_across, strip_of
from webapp.trajectories.queries.evaluation_episodes import episodes_of

BATCH = 2000


log = logging.getLogger(__name__)
SCREENS = 4
"""In one picture."""


def pictures_of(evaluation: Evaluation, number: int) -> list[Picture]:
    """At most `number`, of episodes spread evenly over the tasks; without those whose screens are gone."""
    episodes = [episode for episode in episodes_of(evaluation) if episode.score is not None]
    number = min(number, len(episodes))
    chosen = [episodes[len(episodes) * place // number] for place in range(number)]
    found = (_picture(evaluation, place, episode) for place, episode in enumerate(chosen, start=1))
    return [picture for picture in found if picture is not None]


def _picture(evaluation: Evaluation, place: int, episode: Trajectory) -> Picture | None:
    try:
        strip = strip_of(screens_across(episode, SCREENS))
    except (FileNotFoundError, StorageAway) as error:
        log.warning("trajectory %d goes without its picture: %s", episode.pk, error)
        return None
    if strip is None:
        return None
    return Picture(
        name=f"samples/{evaluation.kind}/{place}",
        step=evaluation.step,
        jpeg=strip,
        caption=f"{episode.task.task_id}: score {episode.score:g}, {counted(episode.num_turns, 'turn')}",
        at=evaluation.at,
    )


@dataclass
class Sent:
    """How much a tracker was sent."""

    points: int = 0
    pictures: int = 0


def run_of(experiment: Experiment) -> TrackedRun:
    """How trackers name the experiment."""
    return TrackedRun(
        experiment_id=experiment.pk,
        name=f"#{experiment.pk} {experiment.name}",
        config=dict(_knobs(experiment.config)),
        tags={"deskhand.team": experiment.team.name},
    )


def follow(experiment: Experiment, sink: Sink, *, every_s: float | None, pictures: int) -> Sent:
    """Send what there is, and `pictures` of each evaluation; with `every_s`, look again until the experiment
    has ended. Raises TrackerError; what the tracker has is kept, the next call goes on."""
    sink.begin(run_of(experiment))
    metrics, evaluations, sent = (0, 0), 0, Sent()
    while True:
        experiment.refresh_from_db()
        has_ended = ExperimentStatus(experiment.status).is_final()  # before the last look, not after it
        while points := _metrics_after(experiment, metrics):
            sink.send([point for _, point in points])
            metrics, sent.points = points[-1][0], sent.points + len(points)
        rows = list(experiment.evaluations.filter(pk__gt=evaluations).order_by("pk"))
        if rows:
            found = [point for row in rows for point in _points_of(row)]
            sink.send(found)
            evaluations, sent.points = rows[-1].pk, sent.points + len(found)
        for row in rows:
            if shown := pictures_of(row, pictures):
                sink.show(shown)
                sent.pictures += len(shown)
        if has_ended or every_s is None:
            sink.end(experiment.status)
            return sent
        time.sleep(every_s)


def _metrics_after(experiment: Experiment, cursor: tuple[int, int]) -> list[tuple[tuple[int, int], Point]]:
    """The next points by (attempt, id): a resumed attempt writes the steps that it repeats again."""
    attempt, pk = cursor
    rows = (
        MetricPoint.objects.filter(experiment=experiment)
        .filter(Q(attempt__gt=attempt) | Q(attempt=attempt, pk__gt=pk))
        .order_by("attempt", "pk")[:BATCH]
    )
    return [((row.attempt, row.pk), Point(row.name, row.step, row.value, row.at)) for row in rows]


def _points_of(evaluation: Evaluation) -> list[Point]:
    """Success by the state with its interval, what the agent ended, mean score; greedy, sampled apart."""
    names = ("success", "low", "high", "solved", "mean_score")
    values = {name: getattr(evaluation, name) for name in names}
    return [
        Point(f"evaluation/{evaluation.kind}/{name}", evaluation.step, value, evaluation.at)
        for name, value in values.items()
        if value is not None
    ]


def _knobs(values: dict[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _knobs(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value
