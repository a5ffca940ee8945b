"""Setup verbs: one function per verb, `SETUP_VERBS` the table of all."""

import base64
import json
import time
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from training.contracts.types import Action, ActionKind
from workers.desktops.screen_settling import settle_limits_for, wait_until_settled
from workers.desktops.windows.iso_disc import make_disc
from workers.tasks.errors import SetupError, TaskErrorKind
from workers.tasks.show_panel_window import show_panel
from workers.tasks.task_desktop_contract import TaskDesktop
from workers.tasks.window_placement import is_named, limit_of, place, wait_focused, wait_painted

Parameters = dict[str, Any]
UNTIL_LIMIT_S = 30.0
UNTIL_PAUSE_S = 0.2
MAX_SLEEP_S = 120.0


@runtime_checkable
class DiscDrive(Protocol):
    """A console whose machine has a disc drive."""

    def insert_disc(self, disc: bytes) -> None:
        """Put an ISO image into the drive."""


def insert_disc(parameters: dict[str, Any], desktop: TaskDesktop) -> None:
    """`files` as for upload_file, their paths relative to the disc; `label` names it."""
    console = desktop.console
    if not isinstance(console, DiscDrive):
        raise SetupError(
            TaskErrorKind.UNSUPPORTED, "insert_disc: this provider's desktops have no disc drive"
        )
    files = {str(item["path"]): content_of(item) for item in parameters["files"]}
    console.insert_disc(make_disc(files, label=str(parameters.get("label", "TASK"))))


def content_of(item: dict[str, Any]) -> bytes:
    """A file's inline content: text, or base64. Raises KeyError, ValueError."""
    if "content_base64" in item:
        return base64.b64decode(item["content_base64"], validate=True)
    return str(item["content"]).encode()


def run_steps(steps: tuple[dict[str, Any], ...] | list[dict[str, Any]], desktop: TaskDesktop) -> None:
    """Run setup steps in order. Raises SetupError; errors of the desktop itself pass through."""
    for index, step in enumerate(steps):
        verb = str(step.get("type"))
        function = SETUP_VERBS.get(verb)
        if function is None:
            raise SetupError(TaskErrorKind.UNSUPPORTED, f"setup step {index}: verb {verb} is not supported")
        try:
            function(step.get("parameters", {}), desktop)
        except (KeyError, TypeError, ValueError) as error:
            raise SetupError(TaskErrorKind.TASK, f"setup step {index} ({verb}): {error!r}") from error


def launch(parameters: Parameters, desktop: TaskDesktop) -> None:
    desktop.agent.launch(parameters["command"], shell=bool(parameters.get("shell", False)))


def execute(parameters: Parameters, desktop: TaskDesktop) -> None:
    """Run a command to its end; with `until`, again and again until the condition holds.

    As in OSWorld a non-zero exit alone is no error: many tasks clean up what may not be there.
    """
    until = parameters.get("until") or {}
    deadline = time.monotonic() + UNTIL_LIMIT_S
    while True:
        result = desktop.agent.execute(parameters["command"], shell=bool(parameters.get("shell", False)))
        seen: dict[str, Any] = {
            "returncode": result.returncode,
            "stdout": result.output,
            "stderr": result.error,
        }
        if all(
            wanted == seen[key] if key == "returncode" else wanted in seen[key]
            for key, wanted in until.items()
        ):
            return
        if time.monotonic() > deadline:
            raise SetupError(TaskErrorKind.TASK, f"{parameters['command']!r}: {until} did not come true")
        time.sleep(UNTIL_PAUSE_S)


def sleep(parameters: Parameters, desktop: TaskDesktop) -> None:
    time.sleep(min(float(parameters["seconds"]), MAX_SLEEP_S))


def open_file(parameters: Parameters, desktop: TaskDesktop) -> None:
    desktop.agent.open_file(str(parameters["path"]))


def activate_window(parameters: Parameters, desktop: TaskDesktop) -> None:
    title = _wait_for(parameters, desktop)
    if not desktop.activate_window(title):
        raise SetupError(TaskErrorKind.DESKTOP, f"window {title!r} closed before it could be activated")
    wait_focused(desktop, title)
    wait_until_settled(desktop.console, settle_limits_for(ActionKind.CLICK))


def close_window(parameters: Parameters, desktop: TaskDesktop) -> None:
    """Close the first window of this name, and see it gone."""
    title = _wait_for(parameters, desktop)
    num_before = _count(title, desktop)
    desktop.close_window(title)
    deadline = time.monotonic() + limit_of(desktop.console)
    while _count(title, desktop) >= num_before:
        if time.monotonic() > deadline:
            raise SetupError(TaskErrorKind.TASK, f"window {title!r} did not close; does it ask something?")
        desktop.console.wait_change(0.02)
    wait_until_settled(desktop.console, settle_limits_for(ActionKind.CLICK))


def _count(title: str, desktop: TaskDesktop) -> int:
    return sum(is_named(window, title) for window in desktop.windows())


def _wait_for(parameters: Parameters, desktop: TaskDesktop) -> str:
    """Title or class of the window meant, waiting for it. Raises SetupError."""
    name, strict = str(parameters["window_name"]), bool(parameters.get("strict", False))
    deadline = time.monotonic() + limit_of(desktop.console)
    while not any(is_named(window, name, strict) for window in desktop.windows()):
        if time.monotonic() > deadline:
            seen = ", ".join(repr(window.title) for window in desktop.windows()) or "none"
            raise SetupError(TaskErrorKind.TASK, f"no window {name!r}; windows: {seen}")
        desktop.console.wait_change(0.02)
    return name


def upload_file(parameters: Parameters, desktop: TaskDesktop) -> None:
    """Files with inline `content` (text) or `content_base64`."""
    for item in parameters["files"]:
        desktop.agent.put(str(item["path"]), content_of(item))


def write_file(parameters: Parameters, desktop: TaskDesktop) -> None:
    desktop.agent.put(str(parameters["path"]), str(parameters["content"]).encode())


def panel(parameters: Parameters, desktop: TaskDesktop) -> None:
    # A copy through JSON: specs come from generators (tuples) and from files (lists) alike.
    show_panel(json.loads(json.dumps(parameters["spec"])), str(parameters["result"]), desktop)


def place_window(parameters: Parameters, desktop: TaskDesktop) -> None:
    x, y, width, height = (int(parameters[key]) for key in ("x", "y", "width", "height"))
    place(desktop, str(parameters["window_name"]), (x, y, width, height))


def wait_color(parameters: Parameters, desktop: TaskDesktop) -> None:
    """Wait until a screen point has a colour, then until the screen rests: a program that is slow to draw."""
    wait_painted(desktop.console, {(int(parameters["x"]), int(parameters["y"])): str(parameters["color"])})
    wait_until_settled(desktop.console, settle_limits_for(ActionKind.CLICK))


def press_keys(parameters: Parameters, desktop: TaskDesktop) -> None:
    """Press chords one after the other, e.g. [["ctrl", "a"], ["Delete"]]."""
    for chord in parameters["chords"]:
        desktop.act(Action(kind=ActionKind.KEY, keys=tuple(chord)))
        wait_until_settled(desktop.console, settle_limits_for(ActionKind.KEY))


SETUP_VERBS: dict[str, Callable[[Parameters, TaskDesktop], None]] = {
    "launch": launch,
    "execute": execute,
    "command": execute,
    "sleep": sleep,
    "open": open_file,
    "activate_window": activate_window,
    "close_window": close_window,
    "upload_file": upload_file,
    "insert_disc": insert_disc,
    "write_file": write_file,
    "panel": panel,
    "place_window": place_window,
    "wait_color": wait_color,
    "press_keys": press_keys,
}
