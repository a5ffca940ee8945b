"""pyautogui's interface, as far as agents and tasks use it, without its imports (0.3 s, a second emulated).

Differences, all on purpose: any Unicode text is typed, a missing display is noticed on first use, the pause
after each call is shorter, and looking for pictures on the screen is not offered.
"""

import contextlib
import functools
import time
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence

from deskhand_easing import *  # noqa: F403 - programs find the curves here
from deskhand_easing import linear
from deskhand_exceptions import (  # noqa: F401 - programs find them here
    FailSafeException,
    ImageNotFoundException,
    PyAutoGUIException,
)
from deskhand_input import keysym_of_char
from deskhand_input import shared_input as _input
from deskhand_keys import KEYS
from deskhand_screen import *  # noqa: F403 - programs find pixels and pictures here
from Xlib import XK

PAUSE = 0.02
"""Seconds after each call."""
FAILSAFE = True
MINIMUM_DURATION = 0.1
STEP_S = 1 / 60
LEFT, MIDDLE, RIGHT, PRIMARY, SECONDARY = "left", "middle", "right", "primary", "secondary"
BUTTONS = {"left": 1, "primary": 1, "middle": 2, "right": 3, "secondary": 3, **{n: n for n in range(1, 8)}}
KEYBOARD_KEYS = KEY_NAMES = [*map(chr, range(32, 127)), "\t", "\n", "\r", *KEYS]

Point = namedtuple("Point", "x y")
Size = namedtuple("Size", "width height")


def _acting(function: Callable) -> Callable:
    """Check the fail-safe corner before, pause after."""

    @functools.wraps(function)
    def wrapper(*args: object, _pause: bool = True, **kwargs: object) -> object:
        if FAILSAFE:
            (x, y), (width, height) = position(), size()
            if x in (0, width - 1) and y in (0, height - 1):
                raise FailSafeException("the pointer is in a corner; set pyautogui.FAILSAFE = False")
        result = function(*args, **kwargs)
        if _pause and PAUSE:
            time.sleep(PAUSE)
        return result

    return wrapper


# -- where things are -----------------------------------------------------------------------


def size() -> Size:
    return Size(*_input().size())


resolution = size


def position(x: "int | None" = None, y: "int | None" = None) -> Point:
    now = _input().position()
    return Point(now[0] if x is None else int(x), now[1] if y is None else int(y))


def onScreen(x: object, y: "int | None" = None) -> bool:
    left, top = _place(x, y)
    width, height = size()
    return 0 <= left < width and 0 <= top < height


def _place(x: object, y: object) -> tuple[float, float]:
    """Target of a call: numbers, a pair, or None for where the pointer is."""
    if isinstance(x, Sequence) and not isinstance(x, str):
        x, y = x[0], x[1]
    if x is not None and y is not None:
        return float(x), float(y)  # type: ignore[arg-type]
    now = position()
    return (now.x if x is None else float(x)), (now.y if y is None else float(y))  # type: ignore[arg-type]


# -- pointer --------------------------------------------------------------------------------


def _glide(x: float, y: float, duration: float, tween: "Callable[[float], float] | None") -> None:
    if duration > MINIMUM_DURATION:
        start, steps = position(), max(1, int(duration / STEP_S))
        for step in range(1, steps):
            part = (tween or linear)(step / steps)
            _input().move(start.x + (x - start.x) * part, start.y + (y - start.y) * part)
            time.sleep(duration / steps)
    _input().move(x, y)


@_acting
def moveTo(x=None, y=None, duration=0.0, tween=linear, logScreenshot=False):
    _glide(*_place(x, y), duration, tween)


@_acting
def moveRel(xOffset=None, yOffset=None, duration=0.0, tween=linear, logScreenshot=False):
    now = position()
    _glide(now.x + (xOffset or 0), now.y + (yOffset or 0), duration, tween)


move = moveRel


@_acting
def click(
    x=None, y=None, clicks=1, interval=0.0, button="primary", duration=0.0, tween=linear, logScreenshot=None
):
    _glide(*_place(x, y), duration, tween)
    for number in range(int(clicks)):
        if number and interval:
            time.sleep(interval)
        _input().button(_button(button), down=True)
        _input().button(_button(button), down=False)


def _button(name: object) -> int:
    if name not in BUTTONS:
        raise PyAutoGUIException(f"button {name!r} is none of {list(BUTTONS)}")
    return BUTTONS[name]  # type: ignore[index]


def _clicker(button: str, clicks: int) -> Callable:
    def clicker(x=None, y=None, interval=0.0, duration=0.0, tween=linear, logScreenshot=None, **more):
        which = more.get("button", button)
        click(x, y, clicks=clicks, interval=interval, button=which, duration=duration, tween=tween)

    return clicker


leftClick = _clicker("left", 1)
rightClick = _clicker("right", 1)
middleClick = _clicker("middle", 1)
doubleClick = _clicker("left", 2)
tripleClick = _clicker("left", 3)


@_acting
def mouseDown(x=None, y=None, button="primary", duration=0.0, tween=linear, logScreenshot=None):
    _glide(*_place(x, y), duration, tween)
    _input().button(_button(button), down=True)


@_acting
def mouseUp(x=None, y=None, button="primary", duration=0.0, tween=linear, logScreenshot=None):
    _glide(*_place(x, y), duration, tween)
    _input().button(_button(button), down=False)


@_acting
def dragTo(
    x=None, y=None, duration=0.0, tween=linear, button="primary", logScreenshot=None, mouseDownUp=True
):
    target = _place(x, y)
    if mouseDownUp:
        _input().button(_button(button), down=True)
    # Programs call it a drag only when they see motion.
    _glide(*target, max(duration, MINIMUM_DURATION * 1.5), tween)
    if mouseDownUp:
        _input().button(_button(button), down=False)


def dragRel(
    xOffset=0, yOffset=0, duration=0.0, tween=linear, button="primary", logScreenshot=None, mouseDownUp=True
):
    now = position()
    dragTo(now.x + (xOffset or 0), now.y + (yOffset or 0), duration, tween, button, None, mouseDownUp)


drag = dragRel


def _wheel(clicks: float, x: object, y: object, buttons: tuple[int, int]) -> None:
    _input().move(*_place(x, y))
    for _ in range(abs(int(clicks))):
        number = buttons[0] if clicks > 0 else buttons[1]
        _input().button(number, down=True)
        _input().button(number, down=False)


@_acting
def scroll(clicks, x=None, y=None, logScreenshot=None):
    _wheel(clicks, x, y, (4, 5))


vscroll = scroll


@_acting
def hscroll(clicks, x=None, y=None, logScreenshot=None):
    _wheel(clicks, x, y, (7, 6))


# -- keyboard -------------------------------------------------------------------------------


def isValidKey(key: str) -> bool:
    return len(key) == 1 or key.lower() in KEYS


def _keysym(key: str) -> int:
    if len(key) == 1:
        return keysym_of_char(key)
    name = KEYS.get(key.lower())
    if name is None:
        raise PyAutoGUIException(f"key {key!r} is unknown")
    if name.startswith("XF86"):
        XK.load_keysym_group("xf86")
    return int(XK.string_to_keysym(name))


@_acting
def keyDown(key, logScreenshot=None):
    _input().key(_keysym(key), down=True)


@_acting
def keyUp(key, logScreenshot=None):
    _input().key(_keysym(key), down=False)


@_acting
def press(keys, presses=1, interval=0.0, logScreenshot=None):
    names = [keys] if isinstance(keys, str) else list(keys)
    for _ in range(int(presses)):
        for name in names:
            _input().key(_keysym(name), down=True)
            _input().key(_keysym(name), down=False)
            if interval:
                time.sleep(interval)


@_acting
def hotkey(*args, interval=0.0, logScreenshot=None):
    names = list(args[0]) if len(args) == 1 and not isinstance(args[0], str) else list(args)
    keysyms = [_keysym(name) for name in names]
    for keysym in keysyms:
        _input().key(keysym, down=True)
        time.sleep(interval)
    for keysym in reversed(keysyms):
        _input().key(keysym, down=False)
        time.sleep(interval)


@contextlib.contextmanager
def hold(keys) -> Iterator[None]:
    """Keep keys pressed inside the block."""
    names = [keys] if isinstance(keys, str) else list(keys)
    for name in names:
        keyDown(name)
    try:
        yield
    finally:
        for name in reversed(names):
            keyUp(name)


@_acting
def write(message, interval=0.0, logScreenshot=None):
    if isinstance(message, str):
        _input().type(message, interval)
        return
    for name in message:
        press(name, interval=interval, _pause=False)


typewrite = write


# -- the rest -------------------------------------------------------------------------------


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def countdown(seconds: int) -> None:
    time.sleep(seconds)
