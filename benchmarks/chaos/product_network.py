"""An env worker behind a link that is cut: its database, its broker and its policy are across."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.chaos.product_run import Missed, Run
from benchmarks.chaos.remote_parts import Far

LOST_S = 60.0


@contextmanager
def cut_network(run: Run) -> Iterator[str]:
    """No packet comes through either way; what the worker had begun goes to others."""
    assert run.link is not None
    held = run.wait_running("w.name like 'far@%'")
    run.link.cut()
    try:
        if run.link.is_up:
            raise Missed("the link is up")
        deadline = time.monotonic() + LOST_S
        while run.rows("select status from fleet_worker where name like 'far@%'") != [("lost",)]:
            if time.monotonic() > deadline:
                raise Missed("the worker behind the link still beats")
            time.sleep(0.5)
        yield f"link down under trajectories {held}; no heartbeat came through"
    finally:
        run.link.mend()


def start_far_worker(run: Run) -> None:
    """It lives until the lane's end."""
    assert run.link is not None
    online = "select name from fleet_worker where status = 'online'"
    parts = Far(
        run.folder,
        run.link,
        run.deskhand.environment,
        run.deskhand.redis_port,
        lambda: [name for (name,) in run.rows(online)],
    )
    run.stack.enter_context(parts.worker())
