"""Deleting an experiment: what people judged stays, the rest goes, and nothing goes that is in use."""

from pathlib import Path

import pytest
from django.test import Client

from testing.factories import (
    make_attempt,
    make_experiment,
    make_group,
    make_replay_entry,
    make_team,
    make_trajectory,
    make_user,
)
from testing.page_text import page_text
from training.contracts.config import ExperimentConfig
from webapp.accounts.models import Role
from webapp.experiments.models import CheckpointRecord, Experiment, MetricPoint, Sweep
from webapp.experiments.sweep_plan import SweepPlan
from webapp.fleet.services.workers import beat_worker
from webapp.replay.models import ReplayEntry
from webapp.replay.services.experiment_deletion import DeletionRefused, delete_experiment, plan_deletion
from webapp.trajectories.frame_files import read_frame
from webapp.trajectories.models import Group, Trajectory

pytestmark = pytest.mark.django_db


def delete(experiment: Experiment) -> None:
    delete_experiment(experiment=experiment, user=make_user(Role.OPERATOR, team=experiment.team))


def ended(**values) -> Experiment:
    return make_experiment(status="finished", **values)


def test_judged_entries_stay_with_their_groups_and_the_rest_goes():
    config = ExperimentConfig()
    desktops = config.desktops.model_copy(update={"max_turns": 7})
    experiment = ended(config=config.model_copy(update={"desktops": desktops}).model_dump(mode="json"))
    judged, sibling = (make_trajectory(group=group) for group in [make_group(experiment=experiment)] * 2)
    waiting = make_trajectory(experiment=experiment)
    entry = make_replay_entry(trajectory=judged, verdict="gold")
    make_replay_entry(trajectory=waiting)
    MetricPoint.objects.create(experiment=experiment, name="loss/total", step=1, value=1)
    other = make_trajectory(team=experiment.team)

    plan = plan_deletion(experiment)
    counted = (plan.num_trajectories, plan.num_inbox, plan.num_kept_trajectories, plan.num_kept_entries)
    assert counted == (1, 1, 2, 1)
    delete(experiment)

    assert set(Trajectory.objects.values_list("pk", flat=True)) == {judged.pk, sibling.pk, other.pk}
    assert list(ReplayEntry.objects.values_list("pk", flat=True)) == [entry.pk]
    assert not MetricPoint.objects.exists()
    assert not Group.objects.exclude(experiment=None).exists()
    kept = Trajectory.objects.get(pk=judged.pk)
    assert kept.desktop_config.max_turns == 7
    assert kept.turns.count() == 1
    assert read_frame(kept.last_frame)


def test_demonstrations_stay():
    experiment = ended()
    shown = make_trajectory(group=make_group(experiment=experiment, purpose="demonstration"))
    delete(experiment)
    assert Trajectory.objects.get().pk == shown.pk


@pytest.mark.parametrize("status", ["queued", "running", "paused", "cancelling"])
def test_one_that_has_not_ended_stays(status: str):
    experiment = make_experiment(status=status)
    with pytest.raises(DeletionRefused, match="cancel it first"):
        delete(experiment)
    assert Experiment.objects.exists()


def test_one_whose_trajectories_still_run_or_whose_checkpoint_is_needed_stays():
    running = ended()
    make_trajectory(experiment=running, status="running")
    with pytest.raises(DeletionRefused, match="still run"):
        delete(running)
    needed = ended()
    checkpoint = needed.checkpoints.create(step=1, policy_version=1, path="/nowhere/1")
    make_experiment(status="queued", evaluates=checkpoint)
    with pytest.raises(DeletionRefused, match="needs one of its checkpoints"):
        delete(needed)
    exported = ended().checkpoints.create(step=1, policy_version=1, path="/nowhere/2")
    exported.exports.create(dtype="float32", status="finished")
    with pytest.raises(DeletionRefused, match="remove them on its tab Checkpoints"):
        delete(exported.experiment)


def test_only_its_own_folders_go(django_capture_on_commit_callbacks, tmp_path: Path, settings):
    settings.EXPERIMENTS_DIR = tmp_path / "experiments"
    experiment, other = ended(), ended()
    folders = [settings.EXPERIMENTS_DIR / str(row.pk) for row in (experiment, other)]
    for folder in (*folders, tmp_path / "elsewhere"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kept").touch()
    experiment.checkpoints.create(step=1, policy_version=1, path=str(tmp_path / "elsewhere"))
    with django_capture_on_commit_callbacks(execute=True):
        delete(experiment)
    assert [folder.exists() for folder in folders] == [False, True]
    assert (tmp_path / "elsewhere" / "kept").exists()


def test_the_page_says_what_goes_and_deletes_only_what_may_go(client: Client):
    team = make_team()
    client.force_login(make_user(Role.OPERATOR, team=team))
    done, running = ended(team=team), make_experiment(team=team)
    make_replay_entry(trajectory=make_trajectory(experiment=done), verdict="accepted")
    query = {"id": [done.pk, running.pk]}
    page = page_text(client.get("/experiments/delete/", query))
    assert "1 replay entry with a verdict" in page
    assert "it is running; cancel it first" in page
    assert "Delete 1 experiment <" in page
    page = page_text(client.post("/experiments/delete/", query, follow=True))
    assert "1 experiment deleted." in page
    assert list(Experiment.objects.values_list("pk", flat=True)) == [running.pk]


def test_a_run_of_a_sweep_stays():
    experiment = ended()
    plan = SweepPlan(num_seeds=2).model_dump(mode="json")
    sweep = Sweep.objects.create(team=experiment.team, name="s", config=experiment.config, plan_values=plan)
    experiment.arm = sweep.arms.create(number=1, values={})
    experiment.save()
    with pytest.raises(DeletionRefused, match="run of a sweep"):
        delete(experiment)


@pytest.mark.parametrize("reported", ["up", "link", "joined"])
def test_a_reported_path_leads_no_deletion_out_of_the_folders_of_checkpoints(
    settings, tmp_path, reported, django_capture_on_commit_callbacks
):
    root, others = tmp_path / "checkpoints", tmp_path / "others"
    settings.CHECKPOINT_DIRS = [root]
    for folder in (root / "mine", others):
        folder.mkdir(parents=True)
        (folder / "weights").touch()
    (root / "link").symlink_to(others)
    paths = {"up": root / ".." / "others", "link": root / "link", "joined": root / "mine"}
    experiment = ended()
    if reported == "joined":
        beat_worker(name="gpu1@far", queue="gpu", host="far", pid=1, slots=1, version="1", is_joined=True)
        make_attempt(experiment, worker_name="gpu1@far")
    CheckpointRecord.objects.create(
        experiment=experiment, step=1, policy_version=1, path=str(paths[reported])
    )
    with django_capture_on_commit_callbacks(execute=True):
        delete(experiment)
    assert (others / "weights").exists()
    assert (root / "mine" / "weights").exists()


def test_a_checkpoint_that_this_machine_saved_goes_with_its_experiment(
    settings, tmp_path, django_capture_on_commit_callbacks
):
    settings.CHECKPOINT_DIRS = [tmp_path]
    saved = tmp_path / "mine" / "step-1"
    saved.mkdir(parents=True)
    experiment = ended()
    CheckpointRecord.objects.create(experiment=experiment, step=1, policy_version=1, path=str(saved))
    with django_capture_on_commit_callbacks(execute=True):
        delete(experiment)
    assert not saved.exists()
    assert tmp_path.exists()
