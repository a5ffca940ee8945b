"""Samples: what is in them, that they come once, never run, train nothing, and go with one click."""

import re

import pytest
from django.test import Client

from testing.factories import make_experiment, make_team, make_user
from testing.page_text import page_text
from training.contracts.types import Source
from webapp.dispatcher.services.waiting_trajectories import fill_free_slots
from webapp.experiments.log_files import log_files, log_folder
from webapp.experiments.models import Experiment, ExperimentStatus, TaskSet
from webapp.experiments.queries.queue import waiting_experiments
from webapp.experiments.services.experiments import resume_experiment
from webapp.replay.models import ReplayEntry
from webapp.replay.services.injections import offers
from webapp.samples.services.deletion import delete_samples
from webapp.samples.services.samples import TASK_SET, seed
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Frame, Trajectory, TurnRecord
from webapp.trajectories.queries.branch_tree import tree_of
from webapp.trajectories.services.group_places import has_left_its_group

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folders(settings, tmp_path):
    settings.EXPERIMENTS_DIR = tmp_path / "experiments"


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def web(team):
    client = Client()
    client.force_login(make_user("operator", team=team))
    return client


def test_everything_that_was_promised_is_there(team):
    found = seed(team=team)
    assert (found.finished.status, found.failed.status) == ("finished", "failed")
    assert found.finished.evaluations.count() == 4
    assert found.failed.policy_version == found.failed.step, "each step made a version"
    assert found.failed.alarms.exists()
    assert found.failed.incidents.exists()
    assert log_files(found.failed.pk)
    trajectories = Trajectory.objects.filter(team=team)
    [branch] = trajectories.filter(purpose="branch")
    assert len(tree_of(branch).rows) == 2
    turn = branch.group.branch_turn
    parents = branch.group.parent.turns.filter(index__lt=turn).values_list("frame", "action")
    assert list(branch.turns.filter(index__lt=turn).values_list("frame", "action")) == list(parents)
    [taken] = trajectories.filter(source=Source.HUMAN)
    assert has_left_its_group(taken)
    assert set(taken.turns.values_list("source", flat=True)) == {"policy", "human"}
    entries = ReplayEntry.objects.filter(team=team)
    assert list(entries.values_list("verdict", flat=True)) == 8 * ["inbox"]
    for sha in TurnRecord.objects.filter(trajectory__team=team).values_list("frame", flat=True).distinct():
        assert read_frame(sha, "png").startswith(b"\x89PNG")


def test_a_second_call_changes_nothing_and_another_team_gets_the_same(team):
    first, again = seed(team=team), seed(team=team)
    assert first == again
    other = make_team()
    seed(team=other)
    columns = ("status", "source", "purpose", "score", "reward", "num_turns", "last_frame", "started_at")
    rows = [
        list(Trajectory.objects.filter(team=one).order_by("pk").values_list(*columns))
        for one in (team, other)
    ]
    assert rows[0] == rows[1]


def test_nothing_of_it_ever_runs_or_trains(team):
    found = seed(team=team)
    assert not Trajectory.objects.filter(team=team, ended_at=None).exists()
    assert fill_free_slots() == 0
    assert not resume_experiment(experiment=found.failed)
    assert not waiting_experiments().exists()
    assert all(ExperimentStatus(row.status).is_final() for row in Experiment.objects.all())
    ReplayEntry.objects.update(verdict="gold")
    for task in TaskSet.objects.get(name=TASK_SET).tasks.all():
        assert offers(team=team, task=task) == []


def test_every_cell_of_its_matrix_opens_two_trajectories_side_by_side(web, team):
    sample = seed(team=team).finished
    page = page_text(web.get(f"/experiments/tasks/?id={sample.pk}"))
    cells = re.findall(r'<td class="m\d">(?:<a href="(c/[\d/]+)">)?', page)
    assert len(cells) == 12  # six tasks, before and after
    opened = [web.get(f"/experiments/tasks/{cell}") for cell in cells if cell]
    assert len(opened) == 12
    for response in opened:
        assert response.status_code == 200
        assert all(side.shown and side.shown.experiment == sample for side in response.context["sides"])
    assert any(response.context["divergence"] is not None for response in opened)


def test_one_click_makes_them_and_one_deletes_them_with_all_that_they_brought(web, team):
    own = make_experiment(team=team, status="finished")
    assert "Look at a recorded sample" not in page_text(web.get("/experiments/"))
    response = web.post("/samples/")
    sample = Experiment.objects.get(is_sample=True, status="finished")
    assert response["Location"] == f"/experiments/{sample.pk}/"
    page = page_text(web.get(response["Location"]))
    assert "Delete the samples" in page
    assert "Sample </span>" in page
    failed = Experiment.objects.get(is_sample=True, status="failed")
    assert "resume-experiment" not in page_text(web.get(f"/experiments/{failed.pk}/"))
    ReplayEntry.objects.filter(team=team).update(verdict="gold")
    web.post("/samples/delete/")
    assert list(Experiment.objects.filter(team=team)) == [own]
    assert not Trajectory.objects.filter(team=team).exists()
    assert not ReplayEntry.objects.filter(team=team).exists()
    assert not TaskSet.objects.filter(name=TASK_SET).exists()


def test_empty_pages_offer_them_to_operators(web, team):
    for path in ("/experiments/", "/trajectories/", "/replay/"):
        assert "Look at a recorded sample" in page_text(web.get(path)), path
    viewer = Client()
    viewer.force_login(make_user("viewer", team=team))
    assert "Look at a recorded sample" not in page_text(viewer.get("/experiments/"))


@pytest.mark.django_db(transaction=True)
def test_files_go_that_nothing_else_shows(team):
    found = seed(team=team)
    other = make_team()
    seed(team=other)
    folder = log_folder(found.failed.pk)
    assert delete_samples(team=team) == 2
    assert not folder.exists()
    sha = TurnRecord.objects.filter(trajectory__team=other).values_list("frame", flat=True)[0]
    assert read_frame(sha, "png")
    assert delete_samples(team=other) == 2
    assert not Frame.objects.filter(sha256=sha).exists()
    with pytest.raises(FileNotFoundError):
        read_frame(sha, "png")
