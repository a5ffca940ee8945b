"""Ranks of two hosts in two networks: the numbers of one host, on one network only, all end together."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from testing.linked_network import Network, network
from testing.small_disk import NoGround
from testing.training.parallel_probe import REPOSITORY
from testing.training.resume_probe import STEPS, program
from training.distributed.launch import Gang
from workers.gpu.failure_reason import waited_for_hosts

pytestmark = [pytest.mark.timeout(600), pytest.mark.network]
LIMIT_S = 240
LOOPBACK = ("127.", "::1")


@dataclass
class TwoHosts:
    """This machine, and a network behind a link."""

    link: Network
    folder: Path
    port: int

    def gang(self, host: int) -> Path:
        return self.folder / f"gang-{host}.json"

    @contextmanager
    def started(self, *arguments: str, ranks: int = 1) -> Iterator[list[subprocess.Popen[str]]]:
        """The launchers of both hosts."""
        launchers = []
        for host in range(2):
            command = [sys.executable, "-m", "training.distributed.launch", "--ranks", str(ranks)]
            command += ["--gang", str(self.gang(host)), *arguments]
            launchers.append(
                subprocess.Popen(
                    self.link.inside(*command) if host else command,
                    cwd=REPOSITORY,
                    env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": f"{self.folder}:{REPOSITORY}"},
                    stderr=(self.folder / f"log-{host}").open("w"),
                    text=True,
                )
            )
        try:
            yield launchers
        finally:
            for launcher in launchers:
                launcher.kill()
                launcher.wait()

    def run(self, *arguments: str, ranks: int = 1) -> None:
        with self.started(*arguments, ranks=ranks) as launchers:
            codes = [launcher.wait(LIMIT_S) for launcher in launchers]
        assert codes == [0, 0], self.log(0) + self.log(1)

    def log(self, host: int) -> str:
        return (self.folder / f"log-{host}").read_text()[-3000:]


def write_gang(path: Path, host: int, addresses: list[str], interface: str = "lo") -> None:
    path.write_text(json.dumps({"host": host, "addresses": addresses, "interface": interface}))


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[TwoHosts]:
    try:
        with network() as link:
            with socket.socket() as probe:
                probe.bind((link.near, 0))
                port = probe.getsockname()[1]
            addresses = [f"{name}:{port}" for name in (link.near, link.far)]
            for host, interface in enumerate((link.link, "far")):
                write_gang(tmp_path / f"gang-{host}.json", host, addresses, interface)
            yield TwoHosts(link, tmp_path, port)
    except NoGround as missing:
        pytest.skip(str(missing))


@pytest.mark.slow
def test_two_hosts_walk_as_one_host_with_two_ranks_and_resume_from_shards(
    hosts: TwoHosts, folder: Path, tmp_path: Path
) -> None:
    saved, steps = tmp_path / "saved", tmp_path / "steps.json"
    saved.mkdir()
    one_host = [sys.executable, "-m", "training.distributed.launch", "--ranks", "2"]
    subprocess.run(
        [*one_host, *program(folder, "straight", saved, steps)],
        cwd=REPOSITORY, check=True, timeout=LIMIT_S, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    expected = json.loads(steps.read_text())
    assert len(expected) == STEPS == 5
    assert all(norm > 1e-3 for _, norm in expected)

    hosts.run(*program(folder, "straight", saved, steps))
    assert_equal(json.loads(steps.read_text()), expected)

    hosts.run(*program(folder, "begin", saved, steps))
    begun = json.loads(steps.read_text())
    assert len(list(saved.glob("*/optimiser/__[01]_*.distcp"))) >= 2, "a shard of each host"
    hosts.run(*program(folder, "resume", saved, steps))
    assert_equal(begun + json.loads(steps.read_text()), expected)


def assert_equal(found: list[list[float]], expected: list[list[float]]) -> None:
    for (loss, norm), (other_loss, other_norm) in zip(found, expected, strict=True):
        assert loss == pytest.approx(other_loss, rel=0, abs=1e-5)
        assert norm == pytest.approx(other_norm, rel=1e-5)


WAITING = """
import sys, time
from pathlib import Path
import torch, torch.distributed as dist
from training.distributed.world import from_main, start_world
world = start_world()
assert from_main("of the first" if world.is_main else None) == "of the first"
total = torch.ones(1)
dist.all_reduce(total)
(Path(sys.argv[1]) / f"rank-{world.rank}").write_text(str(int(total)))
dist.barrier()
while True:
    time.sleep(0.2)
    dist.all_reduce(total)
"""


@contextmanager
def waiting_ranks(hosts: TwoHosts) -> Iterator[list[subprocess.Popen[str]]]:
    """Two ranks on each host that have met and go on until they are ended."""
    (hosts.folder / "waiting.py").write_text(WAITING)
    with hosts.started("-m", "waiting", str(hosts.folder), ranks=2) as launchers:
        ends = time.monotonic() + LIMIT_S
        while len(list(hosts.folder.glob("rank-*"))) < 4:
            assert time.monotonic() < ends, hosts.log(0) + hosts.log(1)
            assert [one.poll() for one in launchers] == [None, None], hosts.log(0) + hosts.log(1)
            time.sleep(0.2)
        assert {path.read_text() for path in hosts.folder.glob("rank-*")} == {"4"}
        yield launchers


def listeners(process: psutil.Process) -> set[tuple[str, int]]:
    tree = [process, *process.children(recursive=True)]
    found = [one for each in tree for one in each.net_connections("tcp") if one.status == "LISTEN"]
    return {(one.laddr.ip, one.laddr.port) for one in found}


@pytest.mark.slow
def test_ranks_listen_on_the_named_network_alone(hosts: TwoHosts) -> None:
    with waiting_ranks(hosts) as launchers:
        found = listeners(psutil.Process(launchers[0].pid))
        assert (hosts.link.near, hosts.port) in found, "the store"
        assert {ip for ip, _ in found if not ip.startswith(LOOPBACK)} == {hosts.link.near}


@pytest.mark.slow
def test_ranks_whose_peers_do_not_come_say_so(hosts: TwoHosts, monkeypatch: pytest.MonkeyPatch) -> None:
    (hosts.folder / "alone.py").write_text(
        "from datetime import timedelta\nfrom training.distributed import world\n"
        "world.MEET_WITHIN = timedelta(seconds=3)\nworld.start_world()\n"
    )
    with hosts.started("-m", "alone") as (first, second):
        second.kill()
        assert first.wait(LIMIT_S)
    assert waited_for_hosts(hosts.log(0)), hosts.log(0)


@pytest.mark.slow
def test_a_rank_that_crashes_ends_the_ranks_of_both_hosts(hosts: TwoHosts) -> None:
    with waiting_ranks(hosts) as launchers:
        victim = psutil.Process(launchers[1].pid).children(recursive=True)[-1]
        victim.kill()
        codes = [launcher.wait(LIMIT_S) for launcher in launchers]
        assert all(codes), codes


def test_a_gangs_file_that_is_wrong_is_named(tmp_path: Path) -> None:
    path = tmp_path / "gang.json"
    write_gang(path, 2, ["a:1", "b:2"])
    with pytest.raises(ValueError, match="host 2 is none of its 2 addresses"):
        Gang.read(path)
    write_gang(path, 0, ["a", "b:2"])
    with pytest.raises(ValueError, match="write IP:PORT"):
        Gang.read(path)
    path.write_text("{}")
    with pytest.raises(ValueError, match="a gang has host, addresses and interface"):
        Gang.read(path)
