"""What every console offers: the screen of one desktop, its mouse and keyboard, perhaps its windows.

    opened -> (perform, wait_change, image)* -> after_reset -> ... -> closed
A console is one class behind `Console` and one row in `workers.desktops.registry.CONSOLES`. Every
failure of the desktop is an `EnvError` of kind infra. Not thread-safe: one owner at a time.
"""

from dataclasses import dataclass
from typing import Protocol

from PIL import Image

from training.actions.typable_text import typing_mistake
from training.contracts.types import Action, ActionKind
from workers.desktops.contract import EnvError, ErrorKind
from workers.desktops.screen_settling import Pace

MAX_WAIT_S = 60.0
"""Longest pause that one `wait` action may ask for."""


class ActionRefused(EnvError):
    """Raised when an action makes no sense on this desktop; nothing was done. The episode goes on."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind=ErrorKind.TASK, permanent=True)


@dataclass(frozen=True)
class Window:
    """One managed window; geometry of its content in screen pixels."""

    window_id: int
    title: str
    window_class: str
    x: int
    y: int
    width: int
    height: int
    is_active: bool


class WindowManager(Protocol):
    """Queries and requests over the desktop's window manager."""

    def all(self) -> list[Window]:
        """Managed windows, oldest first."""

    def find(self, text: str) -> Window | None:
        """First window whose title or class contains the text, in any case."""

    def activate(self, text: str) -> bool:
        """Raise and focus; False when there is none."""

    def close(self, text: str) -> bool:
        """Ask a window to close, as its close button does; False when there is none."""

    def move(self, window_id: int, box: tuple[int, int, int, int]) -> None:
        """Ask for a place of the window's content: x, y, width, height in screen pixels."""


class Console(Protocol):
    """Screen and input of one desktop."""

    @property
    def pace(self) -> Pace:
        """How slowly this desktop reacts; `workers.desktops.screen_settling` waits by it."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, pixels."""

    @property
    def windows(self) -> WindowManager | None:
        """Its windows; None where only the screen is known."""

    def image(self) -> Image.Image:
        """The whole screen now, RGB."""

    def color_at(self, x: int, y: int) -> str:
        """Colour of one pixel as "#rrggbb"."""

    def perform(self, action: Action) -> None:
        """Do one action; returns when the desktop has taken it. Raises ActionRefused."""

    def let_go(self) -> None:
        """Every key and button is up afterwards, also those that a person pressed."""

    def forget_changes(self) -> None:
        """Start watching for changes from now on."""

    def wait_change(self, timeout_s: float) -> bool:
        """True as soon as something was drawn since the last call (or forget_changes)."""

    def cpu_s(self) -> float:
        """CPU seconds of the whole desktop so far; constant where they are not counted."""

    def after_reset(self) -> None:
        """The desktop was reset in place: forget what was true before."""

    def close(self) -> None:
        """Disconnect. Idempotent."""


def require_typable(action: Action) -> None:
    """Raises ActionRefused for text that no desktop can be typed."""
    is_text = action.kind in (ActionKind.TYPE, ActionKind.PASTE)
    if mistake := typing_mistake(action.text or "" if is_text else ""):
        raise ActionRefused(mistake)


def find_window(windows: list[Window], text: str) -> Window | None:
    """First window whose title or class contains the text, in any case."""
    wanted = text.lower()
    matching = (w for w in windows if wanted in w.title.lower() or wanted in w.window_class.lower())
    return next(matching, None)
