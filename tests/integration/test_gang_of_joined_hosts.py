"""One experiment over two gpu hosts without database and Redis: it outlives each of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from testing.joined_site import JoinedSite, joined_site, running
from testing.small_disk import NoGround
from testing.two_gpu_hosts import BOTH, wait_for
from testing.watch_installation import rows

pytestmark = [
    pytest.mark.desktop,
    pytest.mark.slow,
    pytest.mark.postgres,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(os.geteuid() != 0, reason="hosts need networks of their own: root"),
]
NUM_STEPS = 5


@pytest.fixture
def site(tmp_path: Path) -> Iterator[JoinedSite]:
    tmp_path.chmod(0o755)  # the desk host goes on as another user
    try:
        with joined_site(tmp_path, {}, num_env_hosts=1, slots=2) as made, running(*made.machines):
            yield made
    except NoGround as missing:
        pytest.skip(str(missing))


def test_two_joined_hosts_train_as_one_and_go_on_after_each_was_killed(site: JoinedSite) -> None:
    pool = site.pool
    number = pool.launch(2, steps=NUM_STEPS)
    for host, least in zip(reversed(site.gpu_hosts), (1, 2), strict=True):
        wait_for(f"{least} steps", lambda least=least: len(pool.steps(number)) >= least)
        before = len(pool.attempts(number))
        host.restart()
        wait_for("the next attempt", lambda before=before: len(pool.attempts(number)) > before)
    pool.end_of(number)
    assert [step for step, _ in pool.steps(number)] == list(range(1, NUM_STEPS + 1))
    *broken, last = (one for one in pool.attempts(number) if one[0] != "incomplete")
    assert [status for status, _ in broken] == ["crashed", "lost"]
    assert last == ("finished", BOTH)
    assert rows(site.server, "select num_refused from fleet_joinedhost") == [(0,), (0,), (0,)]
