"""The windows of a Linux sandbox by its own wmctrl, xprop and xwininfo."""

import re

from workers.desktops.agent_contract import Agent
from workers.desktops.console_contract import Window, find_window
from workers.desktops.contract import EnvError, ErrorKind

LIST = (
    "xprop -root _NET_ACTIVE_WINDOW; wmctrl -lx || exit 1; "
    "for id in $(wmctrl -l | cut -d' ' -f1); do echo \"== $id\"; xwininfo -id $id; done; true"
)
_ROW = re.compile(r"^(0x[0-9a-f]+)\s+-?\d+\s+(\S+)\s+\S+ ?(.*)$")
_ACTIVE = re.compile(r"^_NET_ACTIVE_WINDOW.*?(0x[0-9a-f]+)")
_PLACE = {
    "x": re.compile(r"Absolute upper-left X:\s+(-?\d+)"),
    "y": re.compile(r"Absolute upper-left Y:\s+(-?\d+)"),
    "width": re.compile(r"Width: (\d+)"),
    "height": re.compile(r"Height: (\d+)"),
}
STATIC_GRAVITY = 10
"""The place given is that of the content, whatever frame the window manager draws."""


class ShellWindows:
    """Queries and requests; each is one command in the sandbox."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def all(self) -> list[Window]:
        result = self._agent.execute(LIST, shell=True)
        if result.returncode:
            text = f"the sandbox cannot tell its windows (wmctrl, x11-utils): {result.error[:200]}"
            raise EnvError(text, kind=ErrorKind.GUEST)
        return windows_in(result.output)

    def find(self, text: str) -> Window | None:
        return find_window(self.all(), text)

    def activate(self, text: str) -> bool:
        return self._do(text, "-ia")

    def close(self, text: str) -> bool:
        return self._do(text, "-ic")

    def move(self, window_id: int, box: tuple[int, int, int, int]) -> None:
        place = ",".join(str(number) for number in (STATIC_GRAVITY, *box))
        self._wmctrl("-ir", hex(window_id), "-e", place)

    def _do(self, text: str, option: str) -> bool:
        window = self.find(text)
        if window is None:
            return False
        self._wmctrl(option, hex(window.window_id))
        return True

    def _wmctrl(self, *words: str) -> None:
        result = self._agent.execute(["wmctrl", *words])
        if result.returncode:
            raise EnvError(f"wmctrl {' '.join(words)}: {result.error[:200]}", kind=ErrorKind.GUEST)


def windows_in(text: str) -> list[Window]:
    """What LIST printed, oldest first; a window that closed meanwhile is left out."""
    head, *places = text.split("== ")
    active = 0
    rows: dict[int, tuple[str, str]] = {}
    for line in head.splitlines():
        if match := _ACTIVE.match(line):
            active = int(match[1], 16)
        elif match := _ROW.match(line):
            rows[int(match[1], 16)] = (match[2], match[3])
    found = []
    for place in places:
        window_id = int(place.split(None, 1)[0], 16)
        numbers = {name: pattern.search(place) for name, pattern in _PLACE.items()}
        if window_id not in rows or not all(numbers.values()):
            continue
        window_class, title = rows[window_id]
        box = {name: int(match[1]) for name, match in numbers.items() if match}
        found.append(
            Window(
                window_id=window_id,
                title=title,
                window_class=window_class,
                is_active=window_id == active,
                **box,
            )
        )
    return found
