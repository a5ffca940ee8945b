"""One experiment over two gpu hosts in two networks: its numbers are one host's, and it outlives a host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testing.gpu_host import running
from testing.linked_network import Network, network
from testing.private_postgres import private_cluster
from testing.small_disk import NoGround
from testing.two_gpu_hosts import BOTH, SFT, TwoGpuHosts, wait_for

pytestmark = [
    pytest.mark.desktop,
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.postgres,
    pytest.mark.timeout(5400),
    pytest.mark.skipif(os.geteuid() != 0, reason="hosts need networks of their own: root"),
]
NUM_STEPS = 8


@pytest.fixture
def link() -> Iterator[Network]:
    try:
        with network() as made:
            yield made
    except NoGround as missing:
        pytest.skip(str(missing))


@pytest.fixture
def database(link: Network) -> Iterator[str]:
    """Of hosts in both networks."""
    with private_cluster(address=link.near, clients=f"{link.near}/30"):
        yield f"postgresql://deskhand@{link.near}/deskhand"


def test_two_hosts_train_as_one_and_go_on_without_a_lost_one_or_with_it_again(
    link: Network, database: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        pool = TwoGpuHosts.beside_one_link(stack, link, tmp_path, database)
        stack.enter_context(running(pool.hosts[0]))
        with running(pool.hosts[1]) as second:
            fewer = pool.launch(2, least_hosts=1, sft=True, steps=NUM_STEPS)
            wait_for("two steps on two hosts", lambda: len(pool.steps(fewer)) >= 2)
            assert {one.rpartition(":")[0] for one in link.listeners()} == {link.far}, "on no other network"
            second.kill()
        over_two = pool.end_of(fewer)
        (_, began_on), *_, (_, went_on) = pool.attempts(fewer)
        assert (began_on, went_on) == (BOTH, BOTH[:1])
        assert_every_step_once(pool, fewer, over_two)

        alone = pool.end_of(pool.launch(1, sft=True, steps=0))
        assert pool.attempts(alone["id"]) == [("finished", BOTH[:1])]
        for name in SFT:
            found, expected = dict(over_two["metrics"][name]), dict(alone["metrics"][name])
            assert list(found) == [10]
            assert found == pytest.approx(expected, rel=1e-5), name

        whole = pool.launch(2, steps=NUM_STEPS)
        with running(pool.hosts[1]) as second:
            wait_for("two steps", lambda: len(pool.steps(whole)) >= 2)
            second.kill()
            wait_for("the attempt's end", lambda: pool.attempts(whole)[0][0] == "crashed")
        with running(pool.hosts[1]):
            found = pool.end_of(whole)
            last = pool.attempts(whole)[-1]
        assert last == ("finished", BOTH)
        assert_every_step_once(pool, whole, found)
    shards = (tmp_path / "shared").glob(f"experiment-{whole}/checkpoints/*/optimiser/__*_0.distcp")
    assert {path.name for path in shards} == {"__0_0.distcp", "__1_0.distcp"}, "one of each host"


def test_the_other_host_goes_on_when_the_first_one_is_lost(
    link: Network, database: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        pool = TwoGpuHosts.beside_one_link(stack, link, tmp_path, database)
        stack.enter_context(running(pool.hosts[1]))
        with running(pool.hosts[0]) as first:
            experiment = pool.launch(2, least_hosts=1, steps=NUM_STEPS)
            wait_for("two steps on two hosts", lambda: len(pool.steps(experiment)) >= 2)
            first.kill()  # coordinator, policy server and half of the ranks
        found = pool.end_of(experiment)
        assert pool.attempts(experiment) == [("lost", BOTH), ("finished", BOTH[1:])]
        assert found["attempts"][0]["reason"] == "gpu worker gpu@gpu-a stopped answering"
        assert_every_step_once(pool, experiment, found)


def assert_every_step_once(pool: TwoGpuHosts, experiment: int, found: dict[str, Any]) -> None:
    steps = pool.steps(experiment)
    assert [step for step, _ in steps] == list(range(1, NUM_STEPS + 1))
    last = found["attempts"][-1]
    assert last["resumed_step"] >= 1
    assert [step for step, attempt in steps if attempt == last["number"]] == list(
        range(last["resumed_step"] + 1, NUM_STEPS + 1)
    )
