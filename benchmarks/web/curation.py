"""Labelling in Chromium: from the key to the next entry's last screen painted.

    python -m benchmarks.web.curation [--labels 120] [--pause-ms 350]

Starts a private installation (web and Redis), fills its inbox with entries whose screens are all different,
signs in and labels with A, R and G. Bar: key to next painted p95 <= 60 ms. The request behind it is shown as
the browser sees it; its bar, label + next <= 50 ms on the server, is taken by benchmarks.web.pages.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Any

from benchmarks.report import finish, percentile, print_table
from testing.browser.chromium import chromium_page, sign_in
from testing.private_installation import REPOSITORY, Instance

MAX_PAINTED_MS = 60.0
KEYS = "aarag"
NUM_WARM_UP = 5
RECORD = """() => {
    window.painted = [];
    performance.setResourceTimingBufferSize(20000);
    const root = document.getElementById("curate");
    root.addEventListener("entry:painted", (event) => window.painted.push(event.detail));
}"""
REQUESTS = """() => performance.getEntriesByType("resource")
    .filter((entry) => entry.name.includes("/label/"))
    .map((entry) => entry.responseEnd - entry.requestStart)"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=120)
    parser.add_argument("--pause-ms", type=int, default=350, help="between keys: a fast person")
    parser.add_argument("--fill", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        fill(options.fill)
        return 0
    with Instance(without=["deskhost", "gpu", "env", "dispatcher"]) as deskhand:
        number = str(options.labels + NUM_WARM_UP + 10)
        command = [sys.executable, "-m", "benchmarks.web.curation", "--fill", number]
        subprocess.run(command, cwd=REPOSITORY, env=deskhand.environment, check=True)
        figures = measure(deskhand, options.labels, options.pause_ms)
    rows = [(name, figures[f"{name}_p50_ms"], figures[f"{name}_p95_ms"]) for name in ("painted", "request")]
    print_table(("what", "p50 ms", "p95 ms"), rows)
    return finish("curation", figures, passed=figures["painted_p95_ms"] <= MAX_PAINTED_MS)


def measure(deskhand: Instance, num_labels: int, pause_ms: int) -> dict[str, Any]:
    """Label in a real browser and read its clocks."""
    with chromium_page() as page:
        sign_in(page, deskhand)
        page.goto(f"{deskhand.url}/replay/")
        page.wait_for_selector("[data-image] img")
        page.evaluate(RECORD)
        for place in range(num_labels + NUM_WARM_UP):
            page.wait_for_timeout(pause_ms)
            page.keyboard.press(KEYS[place % len(KEYS)])
        page.wait_for_timeout(1000)
        painted = [item["sinceKeyMs"] for item in page.evaluate("window.painted")][NUM_WARM_UP:]
        requests = page.evaluate(REQUESTS)[NUM_WARM_UP:]
    assert len(painted) == len(requests) == num_labels, (len(painted), len(requests))
    return {
        "num_labels": num_labels,
        "painted_p50_ms": round(percentile(painted, 0.5), 1),
        "painted_p95_ms": round(percentile(painted, 0.95), 1),
        "painted_max_ms": round(max(painted), 1),
        "request_p50_ms": round(percentile(requests, 0.5), 1),
        "request_p95_ms": round(percentile(requests, 0.95), 1),
    }


def fill(number: int) -> None:
    """Entries of four turns in the first team's inbox; runs in the installation's environment."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    from testing.factories import make_group, make_task, make_trajectory, make_turn
    from testing.first_desk_screens import MENU, menu_screen
    from webapp.accounts.models import Team
    from webapp.replay.inbox_admission import offer_to_inbox
    from webapp.trajectories.frames import store_frame
    from webapp.trajectories.models import Trajectory

    team = Team.objects.order_by("id")[0]
    group = make_group(team=team, task=make_task(), size=number)
    for place in range(number):
        trajectory = make_trajectory(group=group, member=place, turns=0, reward=1.0)
        sha = ""
        for index in range(4):
            chosen = f"choice {place}.{index}" if index else ""
            png = menu_screen((place + index) % len(MENU), chosen=chosen)
            sha = store_frame(team, png)
            make_turn(trajectory, index, frame=sha, is_last=index == 3)
        Trajectory.objects.filter(pk=trajectory.pk).update(last_frame=sha, num_turns=4)
        offer_to_inbox(trajectory=trajectory)


if __name__ == "__main__":
    sys.exit(main())
