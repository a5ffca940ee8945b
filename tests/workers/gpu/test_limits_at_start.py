"""What was allowed when an experiment was queued, and is not when its attempt begins."""

import pytest
from django.core.management import call_command

from testing.factories import make_experiment, make_team
from training.contracts.config import parse_config
from training.outgoing.secret_grants import FILE
from webapp.experiments.models import AttemptStatus, Experiment
from webapp.experiments.placement.pool import Assignment, Share
from webapp.experiments.services import attempts
from webapp.experiments.services.experiments import queue_experiment, resume_experiment
from webapp.experiments.services.placements import place_experiment
from workers import identity
from workers.gpu import attempt as gpu_attempt

pytestmark = pytest.mark.django_db
URL = "https://cluster.example.com"


@pytest.fixture(autouse=True)
def no_children(settings, tmp_path, monkeypatch):
    """Where children would be started, the test fails."""
    settings.SECRETS_DIR, settings.DATA_DIR = tmp_path / "secrets", tmp_path
    monkeypatch.setattr(gpu_attempt, "Supervision", lambda *_: pytest.fail("it began"))


def queued(team, config):
    return queue_experiment(team=team, owner=None, name="x", config=parse_config(config))


def begin(experiment, number=1):
    place_experiment(Assignment(experiment.pk, (Share(identity.current().name, ()),)))
    gpu_attempt.run(experiment.pk, number)
    attempt = experiment.attempts.get(number=number)
    assert (attempt.status, attempt.ended_at is None) == (AttemptStatus.CRASHED, False)
    experiment = Experiment.objects.get(pk=experiment.pk)
    assert experiment.status == "failed"
    return experiment.message


def test_a_revoked_grant_stops_the_attempt_with_the_command_that_helps(settings):
    team = make_team()
    call_command("grant_secret", "prize", team.name, URL, verbosity=0)
    remote = {"urls": [URL], "slots_per_url": 64, "token_secret": "prize"}
    experiment = queued(team, {"desktops": {"provider": "remote", "remote": remote}})
    (settings.SECRETS_DIR / FILE).unlink()
    message = begin(experiment)
    assert "desktops.remote.token_secret" in message
    assert f"manage.py grant_secret prize '{team.name}' {URL}" in message
    assert resume_experiment(experiment=experiment)
    assert "not granted" in begin(experiment, 2)


def test_a_grants_file_that_cannot_be_read_is_a_refusal_and_no_crash(settings):
    team = make_team()
    call_command("grant_secret", "prize", team.name, URL, verbosity=0)
    remote = {"urls": [URL], "slots_per_url": 64, "token_secret": "prize"}
    experiment = queued(team, {"desktops": {"provider": "remote", "remote": remote}})
    (settings.SECRETS_DIR / FILE).write_text("{")
    assert "cannot be read as grants of secrets" in begin(experiment)


def test_a_setting_that_was_narrowed_meanwhile_is_named(settings):
    settings.GATEWAY_VENDORS = ["acme.deskhand:Vendor"]
    gateway = {"vendor": "acme.deskhand:Vendor"}
    experiment = queued(make_team(), {"desktops": {"provider": "gateway", "gateway": gateway}})
    settings.GATEWAY_VENDORS = []
    message = begin(experiment)
    assert "desktops.gateway.vendor" in message
    assert "DESKHAND_GATEWAY_VENDORS" in message


def test_a_config_that_this_version_cannot_use_is_named():
    values = parse_config({}).model_dump(mode="json")
    values["algorithm"]["name"] = "of another version"
    experiment = make_experiment(status="queued", config=values)
    assert "algorithm.name" in begin(experiment)


def test_a_checkpoint_of_another_host_stops_the_attempt_instead_of_beginning_anew(tmp_path):
    experiment = queued(make_team(), {})
    place_experiment(Assignment(experiment.pk, (Share("gpu@a", ()),)))
    attempts.claim_experiment(experiment_id=experiment.pk, attempt_number=1, worker_name="gpu@a")
    folder = tmp_path / "00001-grpo-000008"
    experiment.checkpoints.create(step=8, policy_version=8, path=str(folder))
    lost = experiment.attempts.get()
    attempts.requeue_after_crash(attempt=lost, status=AttemptStatus.LOST, reason="gone", max_restarts=3)
    message = begin(experiment, 2)
    assert f"the checkpoint of step 8, {folder}, is not on the host of" in message
    assert "attempt 1 ran on gpu@a" in message

    folder.mkdir()  # half a copy is none
    assert resume_experiment(experiment=experiment)
    assert "is not on the host of" in begin(experiment, 3)

    (folder / "COMPLETE").touch()
    assert resume_experiment(experiment=experiment)
    place_experiment(Assignment(experiment.pk, (Share(identity.current().name, ()),)))
    with pytest.raises(pytest.fail.Exception, match="it began"):
        gpu_attempt.run(experiment.pk, 4)
