"""How long does an accessibility tree of 500 widgets take, and what does it cost the quick reset?

    python -m benchmarks.desktops.accessibility [--widgets 500] [--reads 60] [--resets 40]

A window of buttons, entries, check boxes and labels on a desktop of its own. Then resets of a desktop whose
trees are read, a program open each time. Machines differ, so the same run measures what it is compared with:
GNOME's own library reading the same window question by question, and resets of a desktop without trees.

Bar: a read within 50 ms at p95; a reset within 60 ms at p50, and none of them a start of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import cast

from benchmarks.report import finish, percentile, print_table
from testing.desk_host_process import running_host
from testing.workers.slow_tree import PROGRAM as SLOW
from training.observations.widget_tree import widgets_of
from workers.desktops.agent_client import AgentClient
from workers.desktops.contract import DesktopSpec
from workers.desktops.host.client import DeskHostClient, LeaseKeeper
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
PLAIN = SPEC.model_copy(update={"accessibility": False})
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


def slow_reads(env: DesktopEnv, reads: int) -> tuple[list[float], list[float]]:
    """Seconds of a read question by question, and of one question, by GNOME's own library."""
    wholes, questions = [], []
    for _ in range(reads):
        started = time.monotonic()
        answer = cast(AgentClient, env.agent).ask(
            "/execute", {"command": ["/usr/bin/python3", "-c", SLOW]}, timeout_s=60
        )
        wholes.append(time.monotonic() - started)
        read = json.loads(answer["output"])
        questions.append(read["boxes_s"] / read["boxes"])
    return wholes, questions


def reset_time(env: DesktopEnv, spec: DesktopSpec) -> tuple[float, bool]:
    """Seconds of one, and whether it was a start of its own."""
    env.agent.launch(["mousepad"])
    env.wait_for_window("Mousepad", timeout_s=30)
    if spec.accessibility:
        env.agent.accessibility()
    time.sleep(0.3)  # a trajectory lasts longer: the next space is ready by then
    started = time.monotonic()
    made = env.reset()
    return time.monotonic() - started, made.rebuilt


def measure(options: argparse.Namespace, client: DeskHostClient) -> dict[str, float]:
    with ExitStack() as stack:
        with_tree, without = (desktop_of(client, spec, stack) for spec in (SPEC, PLAIN))
        reads, num_shown = read_times(with_tree, options.widgets, options.reads)
        wholes, questions = slow_reads(with_tree, 5)
        pairs = [(reset_time(with_tree, SPEC), reset_time(without, PLAIN)) for _ in range(options.resets)]
    resets, plain = ([pair[number][0] for pair in pairs] for number in (0, 1))
    figures = {
        **spread("read", reads),
        **spread("slow_read", wholes),
        **spread("reset", resets),
        **spread("reset_without_tree", plain),
        "one_question_ms": round(1000 * percentile(questions, 0.5), 3),
    }
    return figures | {
        "widgets_on_screen": num_shown,
        "questions_that_a_read_lasts": round(percentile(reads, 0.5) / percentile(questions, 0.5)),
        "slow_read_over_read": round(percentile(wholes, 0.5) / percentile(reads, 0.5), 1),
        "reset_over_without_tree": round(percentile(resets, 0.5) / percentile(plain, 0.5), 2),
        "resets_not_quick": sum(pair[0][1] for pair in pairs),
    }


def desktop_of(client: DeskHostClient, spec: DesktopSpec, stack: ExitStack) -> DesktopEnv:
    lease = client.acquire("x11", spec, holder=f"accessibility-{spec.accessibility}", ttl_s=60)
    env = stack.enter_context(DesktopEnv(client, lease))
    stack.enter_context(LeaseKeeper(client, lease))
    env.reset()
    return env


def spread(name: str, times: list[float]) -> dict[str, float]:
    return {
        f"{name}_ms_{word}": round(1000 * percentile(times, at), 1)
        for word, at in (("p50", 0.5), ("p95", 0.95))
    }


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--widgets", type=int, default=500)
    arguments.add_argument("--reads", type=int, default=60)
    arguments.add_argument("--resets", type=int, default=40)
    options = arguments.parse_args()
    load = os.getloadavg()[0]
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    with running_host(folder, "--warm-limit", "0") as client:
        figures = measure(options, client)
    print_table(["figure", "value"], [[name, value] for name, value in figures.items()])
    passed = (
        figures["read_ms_p95"] <= 1000 * READ_BAR_S
        and figures["reset_ms_p50"] <= 1000 * RESET_BAR_S
        and not figures["resets_not_quick"]
    )
    amounts = {"reads": options.reads, "resets": options.resets}
    loads = {"load_before_and_after": [round(load, 1), round(os.getloadavg()[0], 1)]}
    return finish("accessibility", figures | amounts | loads, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
