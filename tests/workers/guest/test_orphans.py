"""What programs leave behind when they end takes no place among the desktop's processes."""

from __future__ import annotations

import pytest

from testing.watch_installation import wait_for

LIMIT_S = 60.0


@pytest.mark.desktop
def test_orphans_that_end_are_collected(desktop):
    leave = "for i in 1 2 3 4 5; do setsid sh -c 'sleep 0.05 & exit' & done; sleep 0.3"
    desktop.agent.execute(leave, shell=True)
    states = lambda: desktop.agent.execute("ps -eo stat=", shell=True).output  # noqa: E731
    wait_for(states, lambda: "Z" not in states(), patience_s=LIMIT_S, poll_s=0.05)
