"""A gpu host without database: what its trainer asks and tells goes over HTTPS, once each."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace

import httpx
import pytest
from django.utils.timezone import now

from testing.factories import (
    make_attempt,
    make_experiment,
    make_frame,
    make_task,
    make_team,
    make_user,
)
from training.contracts import coordinator as routes
from training.contracts.config import parse_config
from training.contracts.coordinator import SampleGroup
from training.contracts.types import Purpose
from webapp.experiments.log_files import log_folder
from webapp.experiments.models import Attempt, Experiment, TaskRecord
from webapp.experiments.placement.pool import Assignment, Share
from webapp.experiments.services import attempts as attempt_service
from webapp.experiments.services import gangs
from webapp.experiments.services.placements import place_experiment
from webapp.fleet.models import JoinedHost
from webapp.lib import send_job
from webapp.lib.host_links.joined_identity import JoinedIdentity
from webapp.trajectories.models import Group
from webapp.worker_door import attempts, trajectories, workers
from webapp.worker_door import gangs as door_gangs
from webapp.worker_door.joined_hosts import joining
from webapp.worker_door.joined_hosts.contract_version import version
from webapp.worker_door.trainer_requests import answers
from workers import identity, worker_row
from workers.gpu import attempt as gpu_attempt
from workers.gpu import log_reporter
from workers.gpu.coordinator.handler_contract import AttemptContext
from workers.gpu.coordinator.server import CoordinatorServer
from workers.gpu.experiment_heartbeat import Heartbeat
from workers.gpu.log_reporter import LogReporter
from workers.joined.spooled_reports import Spool, SpooledReports
from workers.reports.contract import CallRefused
from workers.reports.current import reports, use_reports

pytestmark = pytest.mark.django_db(transaction=True)
ME = "gpu1@far"


@pytest.fixture
def host(settings, live_server, tmp_path) -> Iterator[SimpleNamespace]:
    """This process is the gpu host `far` of the installation that the live server is."""
    token = joining.make_token(user=make_user("admin"), roles=["gpu"], team=None)
    welcome = joining.join(token=token, name="far", roles=["gpu"], sent_version=version())
    before = identity.current()
    settings.DATA_DIR = tmp_path
    settings.EXPERIMENTS_DIR = tmp_path / "experiments"
    identity_of_host = JoinedIdentity(live_server.url, "far", welcome.secret, "", {}, ("gpu",))
    spooled = SpooledReports(identity_of_host, Spool(tmp_path / "spool.sqlite3"))
    local = use_reports(spooled)
    identity.announce(identity.Identity(name=ME, queue="gpu", slots=1, host="far"))
    worker_row.beat()
    yield SimpleNamespace(url=live_server.url)
    identity.announce(before)
    use_reports(local)
    spooled.spool.close()


@pytest.fixture
def attempt() -> Attempt:
    task = make_task()
    config = parse_config({"tasks": {"task_set": task.task_set.name}}).model_dump(mode="json")
    return make_attempt(make_experiment(config=config), worker_name=ME)


@pytest.fixture
def trainer(host, attempt) -> Iterator[httpx.Client]:
    """What the trainer's client sees of its coordinator."""
    policy = SimpleNamespace(needs_weights=lambda: False)
    with CoordinatorServer(AttemptContext(attempt.pk, policy)) as server:  # type: ignore[arg-type]
        headers = {"Authorization": f"Bearer {server.token}"}
        with httpx.Client(base_url=server.url, headers=headers, trust_env=False, timeout=30) as client:
            yield client


def deliver_all() -> None:
    spooled = reports()
    assert isinstance(spooled, SpooledReports)
    while spooled.deliver():
        pass


def test_reports_wait_in_the_spool_and_arrive_once(trainer, attempt):
    for step in (1, 2):
        assert trainer.post("/metrics", json={"step": step, "values": {"loss/policy": step}}).json() == {}
    assert not attempt.experiment.metrics.exists(), "nothing was delivered yet"
    deliver_all()
    assert list(attempt.experiment.metrics.values_list("step", "attempt")) == [(1, 1), (2, 1)]
    assert JoinedHost.objects.get().num_refused == 0


def test_tasks_and_groups_are_asked_over_https(trainer, attempt):
    (task,) = trainer.get("/tasks", params={"split": "train"}).json()
    asked = {"task_id": task["task_id"], "size": 2, "purpose": "train", "step": 1, "temperature": 1.0}
    group_id = trainer.post("/groups", json=asked).json()["group_id"]
    assert Group.objects.get(pk=group_id).trajectories.count() == 2
    refused = trainer.post("/groups", json=asked | {"task_id": "no-such"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "refused")
    assert "no task 'no-such'" in refused.json()["error"]["message"]
    assert trainer.get("/groups/finished", params={"after": 0, "wait": 0}).json()["groups"] == []
    assert trainer.get("/control").json()["command"] == "run"
    Experiment.objects.filter(pk=attempt.experiment_id).update(status="cancelling")
    assert trainer.get("/control").json()["command"] == "cancel"


def test_a_group_whose_answer_was_lost_is_not_asked_for_twice(host, attempt):
    asked = SampleGroup(task_id=TaskRecord.objects.get().task_id, size=2, purpose=Purpose.TRAIN, step=1)
    route = routes.SAMPLE_GROUP
    one, again, other = (
        reports().request(answers.answer_trainer, attempt.pk, str(route), route.keep_request(asked), key)
        for key in ("a", "a", "b")
    )
    assert one == again != other
    assert Group.objects.count() == 2


def test_screenshots_come_from_the_server_and_only_of_teams_that_it_works_for(trainer, attempt):
    own = make_frame(attempt.experiment.team, 1)
    found = trainer.get(f"/frames/{own}")
    assert found.headers["content-type"] == "image/png"
    assert found.content.startswith(b"\x89PNG")
    foreign = make_frame(make_team("others"), 2)
    assert trainer.get(f"/frames/{foreign}").status_code == 404
    assert trainer.get("/frames/" + "ab" * 32).status_code == 404


def test_a_further_host_of_a_gang_gets_screenshots_while_the_attempt_runs(host):
    row = make_attempt(worker_name="gpu1@near")
    own, foreign = make_frame(row.experiment.team, 1), make_frame(make_team("others"), 2)
    with pytest.raises(CallRefused, match="has run nothing of team"):
        reports().request(trajectories.read_screenshot, own)
    gangs.call_gang(attempt=row, workers=["gpu1@near", ME], secret="")
    assert reports().request(door_gangs.come, row.pk, 1, ME, "far.example:7") is not None
    assert reports().request(trajectories.read_screenshot, own).startswith(b"\x89PNG")
    with pytest.raises(CallRefused, match="has run nothing of team"):
        reports().request(trajectories.read_screenshot, foreign)
    Attempt.objects.filter(pk=row.pk).update(ended_at=now())
    with pytest.raises(CallRefused, match="has run nothing of team"):
        reports().request(trajectories.read_screenshot, own)


def test_a_host_touches_only_its_own_attempts(host):
    foreign = make_attempt(worker_name="gpu@server")
    for call in (
        lambda: reports().request(attempts.beat_attempt, foreign.pk),
        lambda: reports().request(attempts.runnable_config, foreign.pk),
        lambda: reports().request(answers.answer_trainer, foreign.pk, "GET /tasks", "{}", "k"),
        lambda: reports().request(attempts.claim_attempt, foreign.experiment_id, 2, "gpu@server"),
        lambda: reports().request(door_gangs.come, foreign.pk, 1, "gpu@server", "a:1"),
    ):
        with pytest.raises(CallRefused, match="no worker of far"):
            call()
    reports().report(attempts.end_crashed, foreign.pk, "not mine", 0)
    deliver_all()
    foreign.refresh_from_db()
    assert foreign.ended_at is None
    assert JoinedHost.objects.get().num_refused == 1


def test_an_attempt_that_may_not_begin_is_closed_by_a_report(host, settings):
    gateway = {"vendor": "acme.deskhand:Vendor"}
    config = parse_config({"desktops": {"provider": "gateway", "gateway": gateway}}).model_dump(mode="json")
    experiment = make_experiment(status="queued", config=config)
    place_experiment(Assignment(experiment.pk, (Share(ME, ()),)))
    gpu_attempt.run(experiment.pk, 1)
    assert experiment.attempts.get().ended_at is None, "nothing was delivered yet"
    deliver_all()
    experiment.refresh_from_db()
    assert experiment.status == "failed"
    assert "DESKHAND_GATEWAY_VENDORS" in experiment.message


def test_a_claim_whose_answer_was_lost_is_answered_again(host):
    experiment = make_experiment(status="queued")
    place_experiment(Assignment(experiment.pk, (Share(ME, ()),)))
    first, again = (reports().request(attempts.claim_attempt, experiment.pk, 1, ME) for _ in range(2))
    assert first == again
    assert first is not None
    assert reports().request(attempts.claim_attempt, experiment.pk, 2, ME) is None


def test_a_host_of_a_gang_whose_answer_was_lost_is_answered_again(host):
    row = make_attempt(worker_name="gpu1@near")
    gangs.call_gang(attempt=row, workers=["gpu1@near", ME], secret="PEM")
    first, again, other = (
        reports().request(door_gangs.come, row.pk, 1, ME, f"far.example:{port}") for port in (7, 7, 8)
    )
    assert first == again
    assert first is not None
    assert other is None, "a job that was delivered twice"


def test_a_silent_host_keeps_its_attempt_for_two_minutes(host, attempt):
    with Heartbeat(attempts.HeldAttempt(attempt.pk, attempt.experiment_id, 1)):
        pass
    reports().request(attempts.beat_attempt, attempt.pk)
    row = Experiment.objects.get(pk=attempt.experiment_id)
    assert row.heartbeat_at is not None
    for silent_s, lost in ((60, []), (130, [row.pk])):
        at = row.heartbeat_at - timedelta(seconds=silent_s)
        Experiment.objects.filter(pk=row.pk).update(heartbeat_at=at, placed_worker=ME)
        assert attempt_service.lose_stale_experiments() == lost


def test_what_a_child_writes_is_read_on_the_server(host, attempt, tmp_path, monkeypatch):
    monkeypatch.setattr(log_reporter, "LARGEST_TEXT_BYTES", 16)
    log = tmp_path / "trainer-1.log"
    log.write_text("one\ntwo and more\nhal")
    with LogReporter(attempt.pk, {"trainer": log, "policy": tmp_path / "not-yet"}), log.open("a") as stream:
        stream.write("f\n")
    deliver_all()
    assert (log_folder(attempt.experiment_id) / "trainer-1.log").read_text() == log.read_text()


def test_a_revoked_host_loses_its_attempts_and_the_next_one_is_queued(host, attempt):
    Experiment.objects.filter(pk=attempt.experiment_id).update(placed_worker=ME)
    joining.revoke(host=JoinedHost.objects.get(), user=make_user("admin"))
    attempt.refresh_from_db()
    assert (attempt.status, attempt.reason) == ("lost", "host far was revoked")
    assert Experiment.objects.get(pk=attempt.experiment_id).status == "queued"
    with pytest.raises(CallRefused, match="join it again"):
        reports().request(attempts.beat_attempt, attempt.pk)


def test_a_worker_that_is_started_anew_gives_up_what_it_held(host, attempt):
    reports().report(workers.begin_anew, ME)
    deliver_all()
    attempt.refresh_from_db()
    assert (attempt.status, attempt.reason) == ("lost", f"gpu worker {ME} was started anew")


def test_jobs_of_this_worker_are_taken_from_its_own_queue(host):
    send_job.send_job(send_job.RUN_EXPERIMENT, 7, 1, only=ME)
    send_job.send_job(send_job.JOIN_GANG, 9, 1, only=ME)
    assert [
        (job.name, job.arguments) for _ in range(3) for job in reports().request(workers.take_gpu_jobs, ME)
    ] == [
        (send_job.RUN_EXPERIMENT, (7, 1)),
        (send_job.JOIN_GANG, (9, 1)),
    ]


def test_a_host_that_gives_gpus_only_is_shown_by_its_heartbeats(host, client):
    client.force_login(make_user("viewer"))
    page = client.get("/fleet/").content.decode()
    card = page[page.index("Joined over HTTPS") - 2000 :]
    assert "No desktops: it gives GPUs" in card
    assert "Online" in card
