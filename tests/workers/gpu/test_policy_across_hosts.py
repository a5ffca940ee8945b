"""A gpu host and an env host with a network between them: an episode asks the policy over TLS."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import pytest
import yaml
from django.conf import settings

from testing.factories import make_experiment, make_task
from testing.linked_network import Network, network
from testing.small_disk import NoGround
from testing.training.tiny_model import tiny_folder
from tests.workers.env.test_branch_episodes import machine, run_all  # noqa: F401 (fixture)
from training.contracts.types import Purpose
from webapp.experiments.models import Attempt
from webapp.experiments.services import attempts
from webapp.lib.host_links.certificates import make_self_signed
from webapp.lib.host_links.service_address import ServiceAddress
from webapp.trajectories.services.groups import GroupSpec, create_group
from workers.env.policy_client import PolicyClient, PolicyError
from workers.gpu.policy_server_process import PolicyServer

pytestmark = pytest.mark.network
SAMPLING = {"max_context_tokens": 4096, "max_completion_tokens": 6}
DESKTOPS = {"provider": "qemu", "max_turns": 3, "retries": 0, "qemu": {"snapshot_members": 0}}


@dataclass
class GpuHost:
    """A policy server behind the link, started by the gpu worker's own code."""

    network: Network
    server: PolicyServer
    is_open: Callable[[str, int], bool]
    """(address, port) -> whether something listens there, seen from the gpu host."""


@pytest.fixture(scope="module")
def gpu_host(tmp_path_factory) -> Iterator[GpuHost]:
    folder = tmp_path_factory.mktemp("gpu")
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump({"sampling": SAMPLING}))
    try:
        link = network()
        made = link.__enter__()
    except NoGround as reason:
        pytest.skip(f"no network of its own: {reason}")
    patch = pytest.MonkeyPatch()
    patch.setattr(settings, "POLICY_SERVER", ServiceAddress(made.far, made.far))
    inside = made.thread_inside()

    def start() -> PolicyServer:
        server = PolicyServer(
            attempt=1,
            model=str(tiny_folder()),
            config_path=config,
            folder=folder,
            log_path=folder / "log",
            gpus={},
        )
        server.wait_ready(lambda: None, limit_s=120)
        return server

    def is_open(address: str, port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((address, port)) == 0

    try:
        server = inside.submit(start).result()
        try:
            yield GpuHost(made, server, lambda *where: inside.submit(is_open, *where).result())
        finally:
            inside.submit(server.child.stop, 10.0).result()
    finally:
        inside.shutdown()
        patch.undo()
        link.__exit__(None, None, None)


@pytest.mark.django_db(transaction=True)
def test_an_episode_runs_with_the_policy_on_another_host(machine, gpu_host):  # noqa: F811
    experiment = make_experiment(config={"desktops": DESKTOPS, "sampling": SAMPLING}, status="starting")
    attempt = Attempt.objects.create(experiment=experiment, number=1)
    server = gpu_host.server
    attempts.start_attempt(
        attempt=attempt,
        policy_url=server.url,
        policy_token=server.token,
        policy_certificate=server.certificate,
    )
    request = GroupSpec(task=make_task(), size=1, purpose=Purpose.TRAIN)
    group = create_group(request=request, team_id=experiment.team_id, experiment=experiment, attempt=1)
    row = run_all(group).trajectories.get()
    assert (row.status, row.num_turns, row.error) == ("truncated", 3, "")
    assert row.num_completion_tokens > 0


def test_it_listens_where_it_was_told_and_nowhere_else(gpu_host):
    port = urlsplit(gpu_host.server.url).port
    assert gpu_host.server.url == f"https://{gpu_host.network.far}:{port}"
    assert gpu_host.is_open(gpu_host.network.far, port)
    assert not gpu_host.is_open("127.0.0.1", port)


def test_only_the_token_opens_it(gpu_host):
    server = gpu_host.server
    client = PolicyClient(server.url, "wrong", certificate=server.certificate)
    with pytest.raises(PolicyError) as refused:
        client.health()
    assert refused.value.status == 401


def test_only_its_own_certificate_is_trusted(gpu_host):
    server = gpu_host.server
    for wrong in (make_self_signed(gpu_host.network.far, days=1), make_self_signed("10.0.0.1", days=1)):
        client = PolicyClient(server.url, server.token, certificate=wrong.certificate)
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            client.health()
    with pytest.raises(PolicyError, match="without the certificate"):
        PolicyClient(server.url, server.token)


def test_beyond_loopback_it_starts_with_tls_only(tmp_path):
    command = [sys.executable, "-m", "training.sampler.server", "--model", str(tmp_path), "--host", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--host 0.0.0.0: beyond this machine it needs --certificate and --key" in done.stderr
