"""How long does an accessibility tree of 500 widgets take, and what does it cost the quick reset?

    python -m benchmarks.desktops.accessibility [--widgets 500] [--reads 60] [--resets 40]

A window of buttons, entries, check boxes and labels on a desktop of its own; before each read one of them
changes. Then resets of a desktop whose trees are read, a program open each time.

Bar: a read within 50 ms at p95; a reset within 60 ms at p50, and none of them a start of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.report import finish, percentile, print_table
from testing.desk_host_process import running_host
from training.observations.widget_tree import widgets_of
from workers.desktops.contract import DesktopSpec
from workers.desktops.host.client import LeaseKeeper
from workers.desktops.leased_desktop import DesktopEnv

PROGRAM = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
window, grid = Gtk.Window(title="Widgets"), Gtk.Grid()
window.add(grid)
kinds = (Gtk.Button, Gtk.CheckButton, Gtk.Label)
for place in range({widgets}):
    words = f"W {{place}}"
    made = kinds[place % 3](label=words) if place % 10 else Gtk.Entry(text=words, width_chars=5)
    grid.attach(made, place % 20, place // 20, 1, 1)
window.show_all()
Gtk.main()
"""
SPEC = DesktopSpec(width=1600, height=1000, accessibility=True)
READ_BAR_S, RESET_BAR_S = 0.050, 0.060


def read_times(env: DesktopEnv, widgets: int, reads: int) -> tuple[list[float], int]:
    """Seconds of each read, and how many widgets were seen on the screen."""
    env.reset()
    env.agent.launch(["/usr/bin/python3", "-c", PROGRAM.format(widgets=widgets)])
    env.wait_for_window("Widgets", timeout_s=60)
    env.observe()
    env.agent.accessibility()
    times: list[float] = []
    tree = ""
    for _ in range(reads):
        started = time.monotonic()
        tree = env.agent.accessibility()
        times.append(time.monotonic() - started)
    return times, sum(widget.box is not None for widget in widgets_of(tree))


def reset_times(env: DesktopEnv, resets: int) -> tuple[list[float], int]:
    """Seconds of each, and how many were a start of their own."""
    times, num_slow = [], 0
    for _ in range(resets):
        env.agent.launch(["mousepad"])
        env.wait_for_window("Mousepad", timeout_s=30)
        env.agent.accessibility()
        time.sleep(0.3)  # a trajectory lasts longer: the next space is ready by then
        started = time.monotonic()
        made = env.reset()
        times.append(time.monotonic() - started)
        num_slow += made.rebuilt
    return times, num_slow


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--widgets", type=int, default=500)
    arguments.add_argument("--reads", type=int, default=60)
    arguments.add_argument("--resets", type=int, default=40)
    options = arguments.parse_args()
    load = os.getloadavg()[0]
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    with running_host(folder, "--warm-limit", "0") as client:
        lease = client.acquire("x11", SPEC, holder="accessibility", ttl_s=60)
        with DesktopEnv(client, lease) as env, LeaseKeeper(client, lease):
            reads, num_shown = read_times(env, options.widgets, options.reads)
            resets, num_slow = reset_times(env, options.resets)
    figures = {
        "widgets_on_screen": num_shown,
        **{
            f"read_ms_{name}": round(1000 * percentile(reads, at), 1)
            for name, at in (("p50", 0.5), ("p95", 0.95))
        },
        **{
            f"reset_ms_{name}": round(1000 * percentile(resets, at), 1)
            for name, at in (("p50", 0.5), ("p95", 0.95))
        },
        "resets_not_quick": num_slow,
        "reads": len(reads),
        "resets": len(resets),
        "load_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)],
    }
    print_table(["figure", "value"], [[name, value] for name, value in figures.items()])
    passed = percentile(reads, 0.95) <= READ_BAR_S and percentile(resets, 0.5) <= RESET_BAR_S and not num_slow
    return finish("accessibility", figures, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
