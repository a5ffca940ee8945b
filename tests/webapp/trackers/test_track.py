"""`manage.py track` sends an experiment's numbers and pictures, whatever the tracker."""

from collections.abc import Sequence

import pytest
from django.core.management import CommandError, call_command

from testing.tracked_experiment import caption_of, strip_of_the_evaluation
from webapp.trackers.contract import Picture, Point, TrackedRun
from webapp.trackers.registry import TRACKERS, Tracker

pytestmark = [pytest.mark.db, pytest.mark.django_db]


class Kept:
    """A sink in memory, so that what is sent can be read without a tracker's package."""

    def __init__(self, address: str) -> None:
        self.points: list[Point] = []
        self.pictures: list[Picture] = []

    def begin(self, run: TrackedRun) -> None:
        self.run = run

    def send(self, points: Sequence[Point]) -> None:
        self.points += points

    def show(self, pictures: Sequence[Picture]) -> None:
        self.pictures += pictures

    def end(self, status: str) -> None:
        self.status = status


@pytest.fixture
def sink(monkeypatch) -> Kept:
    kept = Kept("here")
    monkeypatch.setitem(TRACKERS, "kept", Tracker(lambda: lambda address: kept, "nothing", "here"))
    return kept


def test_every_number_goes_once_and_in_the_order_of_attempts(experiment, sink, capsys):
    call_command("track", str(experiment.pk), "--to", "kept=here", "--follow", "0.1")
    success = [(point.step, point.value) for point in sink.points if point.name == "rollout/success"]
    assert success == [(0, 0.0), (1, 0.25), (2, 0.9), (3, 1.0)]
    points = {(one.name, one.step, one.value) for one in sink.points}
    assert ("evaluation/greedy/low", 3, 0.3) in points
    assert "evaluation/greedy/mean_score" in {name for name, _, _ in points}
    assert sink.run.config["algorithm.group_size"]
    assert (sink.run.name, sink.status) == (f"#{experiment.pk} {experiment.name}", "finished")
    [picture] = sink.pictures
    assert (picture.jpeg, picture.caption) == (strip_of_the_evaluation(experiment), caption_of(experiment))
    assert "sent to kept=here; points: 8, pictures: 1" in capsys.readouterr().out


@pytest.mark.parametrize("to", ["aim=here", "kept"])
def test_what_names_no_tracker_is_answered_with_those_there_are(experiment, sink, to):
    with pytest.raises(CommandError, match=f"{to}: expected .*kept=ADDRESS"):
        call_command("track", str(experiment.pk), "--to", to)


def test_pictures_can_be_left_out(experiment, sink, capsys):
    call_command("track", str(experiment.pk), "--to", "kept=here", "--pictures", "0")
    assert "points: 8, pictures: 0" in capsys.readouterr().out
    with pytest.raises(CommandError, match="--pictures: must be 0 to 50"):
        call_command("track", str(experiment.pk), "--to", "kept=here", "--pictures", "51")


def test_an_episode_whose_screens_are_gone_has_no_picture(experiment, sink, capsys):
    experiment.trajectories.get().turns.update(frame="0" * 64)
    call_command("track", str(experiment.pk), "--to", "kept=here")
    assert "points: 8, pictures: 0" in capsys.readouterr().out


def test_an_unknown_experiment_is_refused(db, sink):
    with pytest.raises(CommandError, match="there is no experiment 77"):
        call_command("track", "77", "--to", "kept=here")
