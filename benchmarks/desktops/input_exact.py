"""Do clicks land on the pixel and keys arrive as the character, everywhere on the screen, in every script?

A full-screen window in the desktop writes down where each button press and release reached it: a grid with
all corners and edges, random points, other buttons and drags. Then every printable ASCII character and
characters of many scripts are typed into the editor, saved with ctrl+s and read back from the file.

Bar: not one press, release or character wrong, on every provider that works here.

    python -m benchmarks.desktops.input_exact [--providers x11 qemu] [--images DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.report import finish, percentile, print_table
from testing.desk_host_process import running_host
from testing.watch_installation import wait_for
from training.contracts.types import Action, ActionKind
from workers.desktops.contract import DesktopSpec
from workers.desktops.host.client import DeskHostClient, LeaseKeeper
from workers.desktops.leased_desktop import DesktopEnv

ROOT = Path(__file__).resolve().parents[2]
SCREENS = {"x11": ((512, 384), (1280, 720)), "qemu": ((1280, 720),)}
GRID = 11
RANDOM_POINTS = 150
DRAGS = 12
BATCH = 5
"""Actions between two looks at what arrived: a trajectory too looks at the screen after each of its few."""
EVENTS_LIMIT_S = 120.0
SEED = 7
ARRIVAL_LIMIT_S = 600.0
"""Long: an emulated machine on a busy host is slow, which is not what is measured here."""
ASCII = "".join(chr(code) for code in range(32, 127))
SCRIPTS = {
    "ascii": ASCII,
    "ascii reversed": ASCII[::-1],
    "lines and tabs": "one\n\ttwo\n\n  three\n",
    "latin": "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞß àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ ąęłńśźżő ğışŒœŠšŽž",
    "signs": "€£¥¢©®™°±×÷½¼¾²³µ¶§¿¡«»“”‘’–—…•†‡‰←↑→↓⇒∀∂∃∅∈∑√∞∧∨∩∪∫≈≠≤≥",
    "greek and cyrillic": "αβγδεζηθικλμνξοπρστυφχψω ΑΒΓΔΕ абвгдежзийклмнопрстуфхцчшщъыьэюя АБВГД їєґ",
    "hebrew and arabic": "שלום עולם مرحبا بالعالم",
    "asian": "日本語 漢字 ひらがな カタカナ 中文 简体 한국어 ไทย हिन्दी",
    "emoji": "🙂🚀🎉❤✓✗★☂",
}
RECORDER = """
import json, sys
from Xlib import X, display
d = display.Display()
s = d.screen()
w = s.root.create_window(0, 0, s.width_in_pixels, s.height_in_pixels, 0, s.root_depth, X.InputOutput,
    X.CopyFromParent, override_redirect=True, background_pixel=0x336699,
    event_mask=X.ButtonPressMask | X.ButtonReleaseMask | X.ExposureMask)
w.map()
out = open(sys.argv[1], "w", buffering=1)
while True:
    e = d.next_event()
    if e.type == X.Expose:
        out.write(json.dumps(["ready", 0, 0, 0]) + chr(10))
    elif e.type in (X.ButtonPress, X.ButtonRelease) and e.detail < 4:
        kind = "press" if e.type == X.ButtonPress else "release"
        out.write(json.dumps([kind, e.detail, e.root_x, e.root_y]) + chr(10))
"""
Seen = list[list[Any]]
"""[kind, button, x, y] of each event."""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--providers", nargs="*", default=list(SCREENS), choices=list(SCREENS))
    arguments.add_argument("--images", type=Path, default=ROOT / "var" / "images")
    arguments.add_argument("--templates", type=Path, default=ROOT / "var" / "templates")
    options = arguments.parse_args()
    figures: dict[str, Any] = {"load_average": round(os.getloadavg()[0], 1), "runs": [], "left_out": {}}
    with own_host(options) as client:
        usable = {health.provider: health for health in client.health().providers}
        for provider in options.providers:
            health = usable.get(provider)
            if health is None or not health.usable:
                figures["left_out"][provider] = "; ".join(health.reasons) if health else "unknown here"
                continue
            for width, height in SCREENS[provider]:
                figures["runs"].append(measure(client, provider, width, height))
    return report(figures)


@contextmanager
def own_host(options: argparse.Namespace) -> Iterator[DeskHostClient]:
    places = ["--images", str(options.images), "--templates", str(options.templates)]
    folder = Path(tempfile.mkdtemp(prefix="dh-", dir="/tmp"))
    try:
        with running_host(folder, "--warm-limit", "0", *places) as client:
            yield client
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(client: DeskHostClient, provider: str, width: int, height: int) -> dict[str, Any]:
    """All checks on one desktop."""
    spec = DesktopSpec(width=width, height=height)
    lease = client.acquire(provider, spec, holder="input-exact", ttl_s=120)
    with DesktopEnv(client, lease) as env, LeaseKeeper(client, lease):
        env.reset()
        figures: dict[str, Any] = {"provider": provider, "screen": f"{width}x{height}"}
        figures |= measure_pointer(env, width, height)
        env.reset()
        figures |= measure_typing(env)
    return figures


# -- pointer --------------------------------------------------------------------------------


def actions_for(width: int, height: int) -> list[Action]:
    """Grid with corners and edges, random points, other buttons at the corners, drags."""
    columns = [round(i * (width - 1) / (GRID - 1)) for i in range(GRID)]
    rows = [round(i * (height - 1) / (GRID - 1)) for i in range(GRID)]
    dice = random.Random(SEED)

    def anywhere() -> tuple[int, int]:
        return dice.randrange(width), dice.randrange(height)

    points = [(x, y) for y in rows for x in columns] + [anywhere() for _ in range(RANDOM_POINTS)]
    actions = [Action(kind=ActionKind.CLICK, x=x, y=y) for x, y in points]
    corners = [(x, y) for x in (0, width - 1) for y in (0, height - 1)]
    for kind in (ActionKind.RIGHT_CLICK, ActionKind.MIDDLE_CLICK, ActionKind.DOUBLE_CLICK):
        actions += [Action(kind=kind, x=x, y=y) for x, y in [*corners, anywhere()]]
    for start in [*corners, *(anywhere() for _ in range(DRAGS - 4))]:
        end = anywhere()
        actions.append(Action(kind=ActionKind.DRAG, x=start[0], y=start[1], to_x=end[0], to_y=end[1]))
    return actions


def expected_events(actions: list[Action]) -> Seen:
    buttons = {ActionKind.RIGHT_CLICK: 3, ActionKind.MIDDLE_CLICK: 2}
    events: Seen = []
    for action in actions:
        button = buttons.get(action.kind, 1)
        to_x, to_y = action.x, action.y
        if action.kind is ActionKind.DRAG:
            to_x, to_y = action.to_x, action.to_y
        one = [["press", button, action.x, action.y], ["release", button, to_x, to_y]]
        events += one * (2 if action.kind is ActionKind.DOUBLE_CLICK else 1)
    return events


def measure_pointer(env: DesktopEnv, width: int, height: int) -> dict[str, Any]:
    env.agent.put("~/recorder.py", RECORDER.encode())
    env.agent.launch(["/usr/bin/python3", f"{env.home}/recorder.py", f"{env.home}/events"])
    wait_for("the recording window", lambda: events_of(env), patience_s=ARRIVAL_LIMIT_S)
    actions = actions_for(width, height)
    wanted = expected_events(actions)
    times_ms: list[float] = []
    seen: Seen = []
    for start in range(0, len(actions), BATCH):
        for action in actions[start : start + BATCH]:
            started = time.monotonic()
            env.console.perform(action)
            times_ms.append((time.monotonic() - started) * 1000)
        if not wait_for_events(env, seen, len(expected_events(actions[: start + BATCH]))):
            break
    wrong = [pair for pair in zip(wanted, seen, strict=False) if pair[0] != pair[1]]
    for want, got in wrong[:5]:
        print(f"  wanted {want}, got {got}", file=sys.stderr)
    return {
        "pointer_actions": len(actions),
        "pointer_events": len(wanted),
        "pointer_wrong": len(wrong) + abs(len(wanted) - len(seen)),
        "pointer_p50_ms": round(percentile(times_ms, 0.5), 1),
    }


def wait_for_events(env: DesktopEnv, seen: Seen, count: int) -> bool:
    """Read the events into `seen` until there are that many; False when they do not come."""

    def arrived() -> bool:
        seen[:] = [event for event in events_of(env) if event[0] != "ready"]
        return len(seen) >= count

    try:
        wait_for("the events", arrived, patience_s=EVENTS_LIMIT_S, poll_s=0.1)
    except TimeoutError:
        print(f"  {len(seen)} of {count} events arrived", file=sys.stderr)
        return False
    return True


def events_of(env: DesktopEnv) -> Seen:
    raw = env.agent.get("~/events") or b""
    return [json.loads(line) for line in raw.splitlines() if line.endswith(b"]")]


# -- keyboard -------------------------------------------------------------------------------


def measure_typing(env: DesktopEnv) -> dict[str, Any]:
    env.agent.put("~/typed.txt", b"")
    env.agent.launch(["mousepad", f"{env.home}/typed.txt"])
    env.wait_for_window("typed.txt", timeout_s=ARRIVAL_LIMIT_S)
    wrong: dict[str, int] = {}
    characters = 0
    started = time.monotonic()
    written = ""
    for name, text in SCRIPTS.items():
        written += text + "\n"
        characters += len(text) + 1
        env.act(Action(kind=ActionKind.TYPE, text=text + "\n"))
        env.act(Action(kind=ActionKind.KEY, keys=("ctrl", "s")))
        wrong[name] = wrong_characters(env, written, text)
        if wrong[name]:
            break  # what follows would be compared with a file that is already different
    return {
        "characters": characters,
        "characters_wrong": sum(wrong.values()),
        "wrong_by_script": {name: count for name, count in wrong.items() if count},
        "typing_s": round(time.monotonic() - started, 1),
    }


def wrong_characters(env: DesktopEnv, wanted: str, last: str) -> int:
    """0 as soon as the file is right, else how many of the last text's characters differ after a while."""
    seen = ""

    def is_right() -> bool:
        nonlocal seen
        seen = (env.agent.get("~/typed.txt") or b"").decode("utf-8", "replace")
        return seen == wanted

    try:
        wait_for("the file to be right", is_right, patience_s=ARRIVAL_LIMIT_S)
        return 0
    except TimeoutError:
        start = len(wanted) - len(last) - 1
        pairs = [(want, got) for want, got in zip(wanted[start:], seen[start:], strict=False) if want != got]
        print(f"  typed {last!r}, read {seen[start:]!r}", file=sys.stderr)
        return len(pairs) + abs(len(wanted) - len(seen))


def report(figures: dict[str, Any]) -> int:
    columns = ("provider", "screen", "pointer_events", "pointer_wrong", "pointer_p50_ms")
    columns += ("characters", "characters_wrong", "typing_s")
    rows = [[run[column] for column in columns] for run in figures["runs"]]
    print_table(
        ["provider", "screen", "presses", "wrong", "p50 ms", "characters", "wrong", "typing s"],
        rows,
    )
    for provider, reason in figures["left_out"].items():
        print(f"left out: {provider}: {reason}")
    wrong = sum(run["pointer_wrong"] + run["characters_wrong"] for run in figures["runs"])
    return finish("input_exact", figures, passed=bool(figures["runs"]) and wrong == 0)


if __name__ == "__main__":
    sys.exit(main())
