"""Whole trajectories on lent desktops: from the queue in the database to the score, parked ones included."""

import time
from collections.abc import Callable, Iterator

import pytest

from testing.factories import make_experiment, make_team
from testing.workers.asgi_faults import Fault
from testing.workers.env_server_thread import TOKEN, application, episodes_over, serving
from testing.workers.gateway_cluster import SECRET_VARIABLE, Cluster, running_cluster
from testing.workers.slot_thread import slot_thread
from training.content.task_sets.first_desk import generate
from training.contracts.types import Purpose, Source, Task
from webapp.dispatcher.services import waiting_trajectories
from webapp.experiments.models import Experiment, TaskRecord
from webapp.experiments.services.task_sets import import_task_set
from webapp.fleet.services.workers import beat_worker
from webapp.live.models import Event
from webapp.trajectories.models import Group, Trajectory
from webapp.trajectories.services import groups
from workers import identity
from workers.env import trajectory_job
from workers.env.rented_desktops import gateways_in_use, trajectory_keys
from workers.environments.gateway.delete_unused_sandboxes import delete_everywhere
from workers.environments.registry import EnvironmentRequest

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.desktop]

TASKS = {task.task_id: task for task in generate()}
FAMILIES = ("menu", "note", "colour", "form")
COLOUR = TASKS["first-desk/colour/0000"]
PATIENCE_S = 120


@pytest.fixture
def worker(settings, tmp_path, monkeypatch, redis_client, transactional_db) -> Iterator[None]:
    """One slot of an env worker with the real dispatcher; only the broker in between is left out."""
    settings.MEDIA_ROOT = str(tmp_path)
    sent: list[int] = []
    monkeypatch.setattr(waiting_trajectories, "send_job", lambda _name, pk, only: sent.append(pk))
    me = identity.current()

    def run() -> None:
        beat_worker(name=me.name, queue="env", host=me.host, pid=me.pid, slots=1, version="1")
        waiting_trajectories.fill_free_slots()
        while sent:
            trajectory_job.run(sent.pop(0))

    with slot_thread(patience_s=PATIENCE_S, run=run):
        yield


@pytest.fixture(scope="module")
def whole_cluster(desk_client, tmp_path_factory) -> Iterator[Cluster]:
    with running_cluster(desk_client, tmp_path_factory.mktemp("tls"), 1) as cluster:
        yield cluster


@pytest.fixture
def cluster(whole_cluster, monkeypatch) -> Iterator[Cluster]:
    monkeypatch.setenv(SECRET_VARIABLE, TOKEN)
    whole_cluster.behave()
    yield whole_cluster
    whole_cluster.behave()


def oracle_group(desktops: dict, task: Task = COLOUR, *, size: int = 1) -> Group:
    """A group of oracle trajectories in an experiment with these desktops."""
    import_task_set(name="first-desk", origin="test", tasks=[task])
    experiment = make_experiment(team=make_team())
    Experiment.objects.filter(pk=experiment.pk).update(config={"desktops": desktops})
    experiment.refresh_from_db()
    request = groups.GroupSpec(
        task=TaskRecord.objects.get(task_id=task.task_id),
        size=size,
        purpose=Purpose.VERIFICATION,
        source=Source.ORACLE,
    )
    return groups.create_group(request=request, team_id=experiment.team_id, experiment=experiment)


def wait_for(what: str, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        rows = [(row.pk, row.status, row.error) for row in Trajectory.objects.all()]
        assert time.monotonic() < deadline, f"waited in vain for {what}: {rows}"
        time.sleep(0.05)


def ended(group: Group) -> Trajectory:
    wait_for("the end", lambda: Group.objects.get(pk=group.pk).finished_at is not None)
    return group.trajectories.order_by("-pk")[0]


def has_status(row: Trajectory, status: str) -> Callable[[], bool]:
    return lambda: Trajectory.objects.get(pk=row.pk).status == status


def parked_as(row: Trajectory, is_wanted: Callable[[Trajectory], bool]) -> Callable[[], bool]:
    """While it asks again for a desktop, which it does now and then, it is not parked."""

    def look() -> bool:
        now = Trajectory.objects.filter(pk=row.pk, status="parked").first()
        return now is not None and is_wanted(now)

    return look


def statuses_told(row: Trajectory) -> list[str]:
    events = Event.objects.filter(stream=f"trajectory.{row.pk}", type="trajectory.updated").order_by("seq")
    statuses = [event.payload["status"] for event in events if "status" in event.payload]
    return [status for at, status in enumerate(statuses) if at == 0 or statuses[at - 1] != status]


def test_oracles_of_every_family_solve_their_tasks_on_an_env_server(desk_client, worker, monkeypatch):
    monkeypatch.setenv("DESKHAND_SECRET_ENV_SERVER", TOKEN)
    episodes = episodes_over(desk_client)
    with serving(application(episodes)) as url:
        remote = {"urls": [url], "token_secret": "env-server", "slots_per_url": 1}
        for family in FAMILIES:
            desktops = {"provider": "remote", "num_desktops": 1, "remote": remote}
            row = ended(oracle_group(desktops, TASKS[f"first-desk/{family}/0000"]))
            assert (row.status, row.score, row.error) == ("terminated", 1.0, "")
            assert row.desktop.provider == "remote"
            assert row.turns.exclude(frame="").count() == row.num_turns
        wait_for("the last episode's end", lambda: len(episodes) == 0)


def test_a_trajectory_above_the_quota_waits_parked_and_goes_on(cluster, worker):
    holder = cluster.episodes.open(request_of_a_stranger())
    group = oracle_group({"provider": "gateway", "gateway": cluster.knobs()}, size=2)
    first, second = group.trajectories.order_by("member")
    for row, place in ((first, 1), (second, 2)):
        wait_for("the parking", parked_as(row, lambda now, place=place: now.parking["position"] == place))
        wait_for("no worker", parked_as(row, lambda now: (now.worker, now.ended_at) == (None, None)))
    cluster.episodes.close(holder.episode_id)
    ended(group)
    for row in (first, second):
        row.refresh_from_db()
        assert (row.status, row.score, row.tries) == ("terminated", 1.0, 0)
        statuses = statuses_told(row)
        assert statuses[:2] == ["resetting", "parked"]
        assert statuses[-4:] == ["resetting", "running", "evaluating", "terminated"]
    assert group.trajectories.count() == 2
    wait_for("the sandboxes' end", lambda: cluster.episodes.held() == [])


def test_a_parked_trajectory_leaves_its_slot_to_others(cluster, worker, desk_client, settings):
    settings.DESKHOST_SOCKET = desk_client.socket_path
    cluster.episodes.open(request_of_a_stranger())
    parked = oracle_group({"provider": "gateway", "gateway": cluster.knobs()})
    row = parked.trajectories.get()
    wait_for("the parking", has_status(row, "parked"))
    assert ended(oracle_group({"provider": "x11"})).score == 1.0
    wait_for("parked as before", has_status(row, "parked"))  # it asks for a desktop now and then
    groups.cancel_group(group=parked)
    assert ended(parked).status == "cancelled"
    assert [each.holder for each in cluster.episodes.held()] == ["a stranger"]


def test_a_session_that_ends_is_errored_and_run_again_without_a_score(cluster, worker):
    cluster.door.faults = [Fault("/v1/input", status=410, body={"error": "session expired"})]
    row = ended(oracle_group({"provider": "gateway", "gateway": cluster.knobs()}))
    assert (row.status, row.score, row.tries) == ("terminated", 1.0, 1)
    first = row.retry_of
    assert (first.status, first.error_kind, first.score, first.reward) == (
        "errored",
        "desktop_infra",
        None,
        None,
    )
    assert "session is over" in first.error
    wait_for("the sandboxes' end", lambda: cluster.episodes.held() == [])


def test_who_waits_too_long_is_errored(cluster, worker):
    cluster.episodes.open(request_of_a_stranger())
    desktops = {"provider": "gateway", "retries": 0, "gateway": cluster.knobs(max_parked_s=1.0)}
    row = ended(oracle_group(desktops))
    assert (row.status, row.error_kind, row.score) == ("errored", "parked_too_long", None)


def test_a_lost_sandbox_is_deleted(cluster, worker):
    row = ended(oracle_group({"provider": "gateway", "gateway": cluster.knobs()}))
    wait_for("the sandbox's end", lambda: cluster.episodes.held() == [])
    lost = cluster.episodes.open(request_of_a_stranger(owner="deskhand-tests", key=f"trajectory-{row.pk}"))
    assert delete_everywhere(gateways_in_use(), trajectory_keys) == 1
    assert lost.is_closed


def request_of_a_stranger(owner: str = "a stranger", key: str = "x") -> EnvironmentRequest:
    return EnvironmentRequest("x11", COLOUR.screen, owner, key=f"{owner}/{key}")
