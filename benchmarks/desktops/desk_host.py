"""One desktop host: what do starting, resetting, looking and launching cost, and what is left behind?

Bar: reset p50 <= 0.8 s with one desktop and with eight in use at once; no process, file descriptor,
socket, folder or control group left after 200 resets.

    python -m benchmarks.desktops.desk_host [--resets 200]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, cast

import psutil

from benchmarks.report import finish, percentile, print_table
from testing.desk_host_process import start_host, stop_host
from training.contracts.types import Action, ActionKind
from webapp.trajectories import screenshot_jpegs
from workers.desktops import frame_images
from workers.desktops.contract import DesktopSpec
from workers.desktops.host.client import DeskHostClient
from workers.desktops.leased_desktop import DesktopEnv
from workers.desktops.screen_settling import AT_ONCE
from workers.desktops.x11.console import X11Console

MAX_RESET_S = 0.8
DESKTOPS = 8
LAUNCHES = 7
PROGRAMS = {
    "panel": ["deskhand-panel", "/home/user/spec.json", "/home/user/result.json"],
    "mousepad": ["mousepad", "/home/user/note.txt"],
    "zenity": ["zenity", "--entry", "--text", "Name?"],
    "galculator": ["galculator"],
    "pcmanfm": ["pcmanfm"],
    "xterm": ["xterm"],
}
PANEL = {
    "title": "panel",
    "width": 300,
    "height": 200,
    "widgets": [
        {"id": "text", "kind": "entry", "x": 9, "y": 80, "width": 200, "height": 40},
        {"id": "red", "kind": "button", "color": "#d32f2f", "x": 9, "y": 9, "width": 90, "height": 60},
    ],
}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--resets", type=int, default=200)
    options = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    host, client = start_host(folder)
    try:
        figures = measure(client, psutil.Process(host.pid), options.resets)
        members = psutil.Process(host.pid).children(recursive=True)
    finally:
        stop_host(host)
    figures["left_after_stop"] = {
        "processes": sum(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in members),
        "folders": len(list((folder / "d").iterdir())),
        "records": len(list((folder / "pids").iterdir())),
        "sockets": int((folder / "s").exists()),
        "cgroups": len(list(Path("/sys/fs/cgroup").glob(f"*/deskhand-{host.pid}-*"))),
    }
    shutil.rmtree(folder, ignore_errors=True)
    return report(figures)


def measure(client: DeskHostClient, host: psutil.Process, resets: int) -> dict[str, Any]:
    figures: dict[str, Any] = {"load_average": os.getloadavg()[0]}
    figures["start_s"] = measure_starts(client)
    lease = client.acquire("x11", DesktopSpec(), holder="bench", ttl_s=600)
    with DesktopEnv(client, lease) as env:
        figures["reset_one"] = measure_resets(client, env, host, resets=40)
        figures["screen_ms"] = measure_screen(env)
        figures["launch"] = {name: measure_launch(client, env, name) for name in PROGRAMS}
        figures["leaks"] = measure_leaks(client, env, host, resets)
    figures["reset_eight"] = measure_many(client)
    return figures


def usage_of(client: DeskHostClient, env: DesktopEnv) -> Any:
    wanted = env.lease.desktop.desktop_id
    return next(row.usage for row in client.list() if row.info.desktop_id == wanted)


def measure_starts(client: DeskHostClient) -> dict[str, float]:
    times = []
    for _ in range(5):
        started = time.monotonic()
        info = client.create("x11", DesktopSpec())
        times.append(time.monotonic() - started)
        cpu_s, rss_mb = client.list()[0].usage.cpu_s, client.list()[0].usage.rss_mb
        pss_mb = sum(p.memory_full_info().pss for p in _family(client.list()[0].pid)) / 2**20
        client.destroy(info.desktop_id)
    return {"p50": percentile(times, 0.5), "cpu_s": cpu_s, "rss_mb": rss_mb, "pss_mb": pss_mb}


def _family(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def dirty(env: DesktopEnv) -> None:
    """What a trajectory leaves: a program with a window, files, typed text."""
    env.agent.put("~/spec.json", json.dumps(PANEL).encode())
    env.agent.launch(PROGRAMS["panel"])
    env.wait_for_window("panel", settled=False)
    env.act(Action(kind=ActionKind.TYPE, text="abc"))
    env.observe(AT_ONCE)


def measure_resets(
    client: DeskHostClient, env: DesktopEnv, host: psutil.Process, resets: int
) -> dict[str, float]:
    """Resets after a small trajectory; CPU of desktop and desk host together."""
    times, inside_s, host_s = [], 0.0, 0.0
    for _ in range(resets):
        dirty(env)
        time.sleep(0.1)
        inside, outside = usage_of(client, env).cpu_s, sum(host.cpu_times()[:2])
        started = time.monotonic()
        assert not env.reset().rebuilt
        times.append(time.monotonic() - started)
        host_s += sum(host.cpu_times()[:2]) - outside
        inside_s += usage_of(client, env).cpu_s - inside
    return {
        "p50": percentile(times, 0.5),
        "p95": percentile(times, 0.95),
        "cpu_s_inside": inside_s / resets,
        "cpu_s_host": host_s / resets,
    }


def measure_screen(env: DesktopEnv) -> dict[str, float]:
    dirty(env)
    display = cast(X11Console, env.console).display
    pixels = display.pixels()
    image = frame_images.image_of(pixels, *env.size)
    jobs = {
        "pixels": display.pixels,
        "png": lambda: frame_images.png_of(image),
        "jpeg": lambda: screenshot_jpegs.jpeg_of(image),
        "thumb": lambda: screenshot_jpegs.thumb_of(image),
        "observe": lambda: env.observe(AT_ONCE),
        "type_and_observe": lambda: act_and_observe(env, Action(kind=ActionKind.TYPE, text="x")),
        "click_without_effect": lambda: act_and_observe(env, Action(kind=ActionKind.CLICK, x=5, y=5)),
    }
    return {name: percentile([_timed(job) for _ in range(30)], 0.5) * 1000 for name, job in jobs.items()}


def act_and_observe(env: DesktopEnv, action: Action) -> None:
    env.act(action)
    env.observe()


def _timed(job: Any) -> float:
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def measure_launch(client: DeskHostClient, env: DesktopEnv, name: str) -> dict[str, float]:
    """From the launch call to a visible and to a settled window; CPU of the whole desktop."""
    visible, settled, cpu = [], [], []
    for _ in range(LAUNCHES):
        env.reset()
        env.agent.put("~/spec.json", json.dumps(PANEL).encode())
        env.agent.put("~/note.txt", b"hello\n")
        before = usage_of(client, env).cpu_s
        started = time.monotonic()
        env.agent.launch(PROGRAMS[name])
        env.wait_for_window(name, settled=False)
        visible.append(time.monotonic() - started)
        env.wait_for_window(name)
        settled.append(time.monotonic() - started)
        cpu.append(usage_of(client, env).cpu_s - before)
    return {
        key: percentile(v, 0.5) for key, v in (("visible_s", visible), ("settled_s", settled), ("cpu_s", cpu))
    }


def measure_leaks(
    client: DeskHostClient, env: DesktopEnv, host: psutil.Process, resets: int
) -> dict[str, int]:
    """What grew over many resets: counted after the first few and at the end."""
    for _ in range(5):
        dirty(env)
        env.reset()
    before = traces(client, env, host)
    for _ in range(resets):
        dirty(env)
        assert not env.reset().rebuilt
    after = traces(client, env, host)
    return {"resets": resets, **{name: after[name] - before[name] for name in before}}


def traces(client: DeskHostClient, env: DesktopEnv, host: psutil.Process) -> dict[str, int]:
    family = _family(host.pid)
    return {
        "processes": len(family),
        "fds": sum(p.num_fds() for p in family) + psutil.Process().num_fds(),
        "sockets": sum(len(p.net_connections("unix")) for p in family),
        "files": int(env.agent.execute("find ~ /tmp /dev/shm /run | wc -l", shell=True).output),
        "rss_mb": round(sum(p.memory_info().rss for p in family) / 2**20),
    }


def measure_many(client: DeskHostClient) -> dict[str, float]:
    """Eight desktops used at once: each thread dirties and resets its own."""
    times: list[float] = []

    def work(number: int) -> None:
        lease = client.acquire("x11", DesktopSpec(), holder=f"bench-{number}", ttl_s=600)
        with DesktopEnv(client, lease) as env:
            for _ in range(12):
                dirty(env)
                started = time.monotonic()
                env.reset()
                times.append(time.monotonic() - started)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(DESKTOPS)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    per_s = len(times) / (time.monotonic() - started)
    return {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95), "launch_and_reset_per_s": per_s}


def report(figures: dict[str, Any]) -> int:
    rows = []
    for group, values in figures.items():
        if not isinstance(values, dict):
            rows.append((group, "", f"{values:.2f}"))
            continue
        for name, value in values.items():
            pairs = value.items() if isinstance(value, dict) else [("", value)]
            rows += [(group, f"{name} {key}".strip(), f"{number:.4g}") for key, number in pairs]
    print_table(("what", "", "value"), rows)
    leaks = figures["leaks"]
    clean = not any(leaks[name] > 0 for name in ("processes", "sockets", "files", "fds"))
    clean = clean and not any(figures["left_after_stop"].values())
    fast = max(figures["reset_one"]["p50"], figures["reset_eight"]["p50"]) <= MAX_RESET_S
    return finish("desktops", figures, passed=clean and fast)


if __name__ == "__main__":
    sys.exit(main())
