"""Putting a window's content exactly where a task says, and seeing that it is drawn there."""

import time
from collections.abc import Iterator

from training.contracts.types import ActionKind
from workers.desktops.console_contract import Console, Window
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.screen_settling import settle_limits_for, wait_until_settled
from workers.tasks.errors import SetupError, TaskErrorKind
from workers.tasks.task_desktop_contract import TaskDesktop

Box = tuple[int, int, int, int]
"""x, y, width, height of a window's content, screen pixels."""

FRAME_LEFT, FRAME_TOP = 1, 20
"""What the desktop's theme adds; programs place their frame, tasks place the content."""
LIMIT_S = 10.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.004, 0.02
"""Between two looks at windows or pixels; each is half as long again as the one before."""


def limit_of(console: Console) -> float:
    """Seconds that a program on this desktop gets to open a window or to draw."""
    return LIMIT_S * console.pace.patience


def wait_focused(desktop: TaskDesktop, text: str) -> Window:
    """The window that contains `text` in title or class, once it has the keyboard. Raises SetupError."""
    limit_s = limit_of(desktop.console)
    desktop.wait_for_window(text, timeout_s=limit_s, settled=False)
    deadline, pauses = time.monotonic() + limit_s, growing_pauses()
    while True:
        window = next((w for w in desktop.windows() if is_named(w, text)), None)
        if window is not None and window.is_active:
            return window
        if time.monotonic() > deadline:
            raise SetupError(TaskErrorKind.DESKTOP, f"window {text!r} did not get the focus in {limit_s:g} s")
        time.sleep(next(pauses))


def growing_pauses() -> Iterator[float]:
    """Seconds, without an end."""
    pause_s = FIRST_PAUSE_S
    while True:
        yield pause_s
        pause_s = min(1.5 * pause_s, LONGEST_PAUSE_S)


def is_named(window: Window, text: str, strict: bool = False) -> bool:
    """Title or class contains `text` in any case; strict: the title is `text`."""
    if strict:
        return window.title == text
    return text.lower() in window.title.lower() or text.lower() in window.window_class.lower()


def place(desktop: TaskDesktop, text: str, box: Box) -> Window:
    """Move and resize the content of a window to `box`; returns when it is there and redrawn."""
    window = wait_focused(desktop, text)
    if box_of(window) != box:
        if desktop.console.windows is None:
            raise EnvError("this desktop's windows cannot be placed from outside", kind=ErrorKind.TASK)
        desktop.console.forget_changes()
        desktop.console.windows.move(window.window_id, box)
        deadline, pauses = time.monotonic() + limit_of(desktop.console), growing_pauses()
        while box_of(window := wait_focused(desktop, text)) != box:
            if time.monotonic() > deadline:
                message = f"window {text!r} stays at {box_of(window)} instead of {box}"
                raise SetupError(TaskErrorKind.TASK, message)
            time.sleep(next(pauses))
    wait_until_settled(desktop.console, settle_limits_for(ActionKind.CLICK))
    return window


def box_of(window: Window) -> Box:
    return window.x, window.y, window.width, window.height


def wait_painted(console: Console, points: dict[tuple[int, int], str]) -> None:
    """Wait until every screen point has its colour ("#rrggbb"). Raises SetupError naming the first other."""
    deadline = time.monotonic() + limit_of(console)
    pauses = growing_pauses()
    for (left, top), color in points.items():
        while (seen := console.color_at(left, top)) != color.lower():
            if time.monotonic() > deadline:
                message = f"the screen shows {seen} at ({left}, {top}) instead of {color}"
                raise SetupError(TaskErrorKind.TASK, message)
            time.sleep(next(pauses))
