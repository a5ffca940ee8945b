"""Labelling in Chromium: from the key to the next entry's last screen painted; and pages of a large buffer.

    python -m benchmarks.web.curation [--entries 10000] [--labels 120] [--pause-ms 350]

Starts a private installation (web and Redis) and fills its buffer with `--entries`: a few ways to do each of
60 tasks, a few pixels apart, and on top of the inbox entries whose screens are all different. It finds the
clusters, signs in, loads the cluster view and the sorted list and queue, and labels with A, R and G.
Bars: the cluster view's first byte p95 <= 200 ms after its request; key to next painted p95 <= 60 ms. The
request behind a label is shown as the browser sees it; its bar, label + next <= 50 ms on the server, is taken
by benchmarks.web.pages.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.report import finish, percentile, print_table
from testing.browser.chromium import chromium_page, sign_in
from testing.private_installation import REPOSITORY, Instance

if TYPE_CHECKING:
    from playwright.sync_api import Page

MAX_PAINTED_MS = 60.0
MAX_CLUSTERS_MS = 200.0
PAGES = {
    "clusters": "/replay/clusters/",
    "list": "/replay/list/?sort=failing",
    "queue": "/replay/?sort=rarity",
}
NUM_LOADS = 20
FIRST_BYTE = """() => {
    const [load] = performance.getEntriesByType("navigation");
    return load.responseStart - load.requestStart;
}"""
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
    parser.add_argument("--entries", type=int, default=10_000, help="of the buffer")
    parser.add_argument("--pause-ms", type=int, default=350, help="between keys: a fast person")
    parser.add_argument("--fill", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        fill(options.fill, options.entries)
        return 0
    load = os.getloadavg()[0]
    with Instance(without=["deskhost", "gpu", "env", "dispatcher"]) as deskhand:
        number = str(options.labels + NUM_WARM_UP + 10)
        command = [sys.executable, "-m", "benchmarks.web.curation", "--fill", number]
        command += ["--entries", str(options.entries)]
        done = subprocess.run(
            command, cwd=REPOSITORY, env=deskhand.environment, check=True, stdout=subprocess.PIPE
        )
        figures = json.loads(done.stdout) | measure(deskhand, options.labels, options.pause_ms)
    figures |= {"load_before": round(load, 1), "load_after": round(os.getloadavg()[0], 1)}
    rows = [
        (name, figures[f"{name}_p50_ms"], figures[f"{name}_p95_ms"])
        for name in (*PAGES, "painted", "request")
    ]
    print_table(("what", "p50 ms", "p95 ms"), rows)
    passed = figures["painted_p95_ms"] <= MAX_PAINTED_MS and figures["clusters_p95_ms"] <= MAX_CLUSTERS_MS
    return finish("curation", figures, passed=passed)


def measure(deskhand: Instance, num_labels: int, pause_ms: int) -> dict[str, Any]:
    """Label in a real browser and read its clocks."""
    with chromium_page() as page:
        sign_in(page, deskhand)
        pages: dict[str, float] = {}
        for name, path in PAGES.items():
            loads = [first_byte(page, deskhand.url + path) for _ in range(NUM_LOADS + 1)][1:]
            pages[f"{name}_p50_ms"] = round(percentile(loads, 0.5), 1)
            pages[f"{name}_p95_ms"] = round(percentile(loads, 0.95), 1)
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
    return pages | {
        "num_labels": num_labels,
        "painted_p50_ms": round(percentile(painted, 0.5), 1),
        "painted_p95_ms": round(percentile(painted, 0.95), 1),
        "painted_max_ms": round(max(painted), 1),
        "request_p50_ms": round(percentile(requests, 0.5), 1),
        "request_p95_ms": round(percentile(requests, 0.95), 1),
    }


def first_byte(page: Page, url: str) -> float:
    """Milliseconds from the request of a page to the first byte of its answer."""
    page.goto(url)
    return float(page.evaluate(FIRST_BYTE))


def fill(number: int, num_entries: int) -> None:
    """The buffer, then `number` entries of four turns at the top of its inbox; prints how long it took.

    Runs in the installation's environment.
    """
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    from benchmarks.web.fill_buffer import compare, fill_buffer
    from testing.factories import make_group, make_task, make_trajectory, make_turn
    from testing.first_desk_screens import MENU, menu_screen
    from webapp.accounts.models import Team
    from webapp.replay.models import ReplayEntry
    from webapp.replay.services.inbox import offer_to_inbox
    from webapp.trajectories.models import Trajectory
    from webapp.trajectories.services.frames import store_frame

    team = Team.objects.order_by("id")[0]
    fill_buffer(team, num_entries)
    began = time.monotonic()
    compared = compare()
    spent_s = time.monotonic() - began
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
    figures = {
        "num_entries": ReplayEntry.objects.count(),
        "num_clusters": ReplayEntry.objects.exclude(cluster=None).values("cluster").distinct().count(),
        "compare_ms_per_entry": round(1000 * spent_s / max(compared, 1), 2),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    sys.exit(main())
