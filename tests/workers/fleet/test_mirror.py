"""The mirror with a real desk host, database and desktops: what operators ask is done and told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from testing.desk_host_process import running_host, start_host, stop_host
from testing.factories import make_trajectory, make_user
from testing.fleet_rows import make_worker
from webapp.fleet.models import Desktop, Host, HostSample, Operation, Verb
from webapp.fleet.services.operations import drain_host, request_operation
from workers.desktops.contract import DesktopSpec, EnvError
from workers.desktops.host.client import DeskHostClient
from workers.desktops.host.messages import Lease
from workers.desktops.registry import open_agent
from workers.fleet.desk_host_mirror import Mirror

pytestmark = [pytest.mark.desktop, pytest.mark.django_db]
SPEC = DesktopSpec()
PATIENCE_S = 60


@pytest.fixture
def client(short_dir) -> Iterator[DeskHostClient]:
    with running_host(short_dir, "--warm-limit", "0") as running:
        yield running


@pytest.fixture
def mirror(client: DeskHostClient) -> Mirror:
    make_worker("env1@h1")
    return Mirror(client, host="h1", name="env1@h1")


def step_until(mirror: Mirror, condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        mirror.step()


def write_nul_to_console(lease: Lease) -> None:
    """As any program of the desktop may, into what the desk host keeps of it."""
    agent = open_agent(lease.desktop.endpoints)
    try:
        assert agent.execute("printf 'a\\0b\\n' > /proc/1/fd/2", shell=True).returncode == 0
    finally:
        agent.close()


def test_a_lease_and_its_end_reach_the_database(client: DeskHostClient, mirror: Mirror):
    assert mirror.step()
    host = Host.objects.get()
    assert (host.name, host.problem, host.max_desktops) == ("h1", "", 16)
    assert host.providers[0]["provider"] == "x11"
    assert HostSample.objects.get(width_s=10).leased == 0
    lease = client.acquire("x11", SPEC, holder="env1@h1/t0", ttl_s=60)
    step_until(mirror, Desktop.objects.filter(phase="leased").exists, "the lease is seen")
    desktop = Desktop.objects.get()
    assert (desktop.name, desktop.holder) == (lease.desktop.desktop_id, "env1@h1/t0")
    assert desktop.worker is not None
    assert desktop.lease_until is not None
    client.destroy(desktop.name)
    step_until(mirror, Desktop.objects.filter(phase="gone").exists, "its end is seen")


def test_a_quarantine_is_carried_out_and_its_trajectory_run_again(client: DeskHostClient, mirror: Mirror):
    lease = client.acquire("x11", SPEC, holder="env1@h1/t0", ttl_s=60)
    step_until(mirror, Desktop.objects.exists, "the desktop is seen")
    desktop = Desktop.objects.get()
    running = make_trajectory(desktop=desktop, status="running")
    write_nul_to_console(lease)
    ann = make_user(name="ann")
    request_operation(desktop=desktop, verb=Verb.QUARANTINE, user=ann, reason="froze")
    step_until(mirror, Desktop.objects.filter(phase="quarantined").exists, "it is in quarantine")
    done = Operation.objects.get()
    assert done.status == "done"
    assert f"trajectory {running.pk} errored and queued again" in done.outcome
    running.refresh_from_db()
    assert (running.status, running.error_kind) == ("errored", "desktop_operator")
    assert "quarantined by ann: froze" in running.error
    assert running.retries.count() == 1
    desktop.refresh_from_db()
    assert desktop.quarantine == "froze (ann)"
    assert "a\N{SYMBOL FOR NULL}b" in desktop.log
    with pytest.raises(EnvError, match="expired"):
        client.renew(lease.lease_id)

    request_operation(desktop=desktop, verb=Verb.KILL, user=ann)
    step_until(mirror, Desktop.objects.filter(phase="gone").exists, "it is ended")
    Desktop.objects.update(phase="ready")
    request_operation(desktop=Desktop.objects.get(), verb=Verb.RESTART, user=ann)
    step_until(mirror, Operation.objects.filter(status="failed").exists, "what cannot be done is told")
    assert "does not exist" in Operation.objects.get(status="failed").outcome


def test_a_drained_host_leases_nothing_until_it_is_undrained(client: DeskHostClient, mirror: Mirror):
    mirror.step()
    ann = make_user()
    drain_host(host=Host.objects.get(), on=True, user=ann)
    mirror.step()
    with pytest.raises(EnvError, match="drained"):
        client.acquire("x11", SPEC, holder="a", ttl_s=60)
    drain_host(host=Host.objects.get(), on=False, user=ann)
    mirror.step()
    client.acquire("x11", SPEC, holder="a", ttl_s=60)


def test_the_pool_expects_no_more_leases_than_there_are_free_slots(short_dir):
    make_worker("env1@h1", slots=2)
    with running_host(short_dir, "--max-desktops", "6") as client:
        mirror = Mirror(client, host="h1", name="env1@h1")
        leases = [client.acquire("x11", SPEC, holder=f"env1@h1/t{n}", ttl_s=60) for n in range(2)]
        for _ in range(20):
            make_trajectory(status="queued")
        mirror.step()
        assert [kind.wanted for kind in client.watch().pool] == [0], "every slot has its desktop"
        client.destroy(leases[0].desktop.desktop_id)
        mirror.step()
        assert [kind.wanted for kind in client.watch().pool] == [1]


def test_a_desk_host_that_is_gone_is_told_and_one_that_comes_back_is_drained_again(short_dir):
    make_worker("env1@h1")
    mirror = Mirror(DeskHostClient(short_dir / "s"), host="h1", name="env1@h1")
    assert not mirror.step()
    assert "does not answer" in Host.objects.get().problem
    drain_host(host=Host.objects.get(), on=True, user=make_user())
    process, client = start_host(short_dir)
    step_until(mirror, Host.objects.filter(problem="").exists, "it answers")
    assert client.health().is_draining
    client.close()
    stop_host(process)
