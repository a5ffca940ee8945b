"""Wait until a screen has reacted to an action and come to rest.

Driven by the X server's damage notification and the desktop's CPU account, so waiting costs next to
nothing: at rest means that for `quiet_s` nothing was drawn or computed. Without any reaction it
gives up after `first_change_s`, longer while a program is still at work, and after `limit_s` in any case.
"""

import os
import time
from dataclasses import dataclass
from typing import Protocol

from training.contracts.types import ActionKind

WINDOWS = 2
"""The quiet time is watched in this many parts, so that work in the first costs only one more."""
MAX_STRAIN = 6.0
BUSY_S = 0.001
"""CPU seconds within one part that mean work: an idle desktop needs 0.0001, a repaint 0.003."""


@dataclass(frozen=True)
class SettleLimits:
    """How long to wait, seconds."""

    first_change_s: float = 0.15
    """Programs answer a key or click within 5-60 ms here."""
    quiet_s: float = 0.04
    """Longer than the gaps between the parts of one GTK repaint."""
    limit_s: float = 2.0
    """For screens that never rest."""


@dataclass(frozen=True)
class Pace:
    """Factors on `SettleLimits` for desktops that react more slowly than processes on this machine."""

    first_change: float = 1.0
    quiet: float = 1.0
    limit: float = 1.0
    busy_s: float = BUSY_S
    """CPU seconds within one part that mean work."""
    patience: float = 1.0
    """Factor on the time that programs get to open a window or to draw."""

    def of(self, settle: SettleLimits) -> SettleLimits:
        return SettleLimits(
            first_change_s=settle.first_change_s * self.first_change,
            quiet_s=settle.quiet_s * self.quiet,
            limit_s=settle.limit_s * self.limit,
        )


class Watched(Protocol):
    @property
    def pace(self) -> Pace:
        """How slowly it reacts."""

    def wait_change(self, timeout_s: float) -> bool:
        """True as soon as something was drawn since the last call."""

    def cpu_s(self) -> float:
        """CPU seconds of the whole desktop so far; constant where they are not counted."""


AT_ONCE = SettleLimits(first_change_s=0.0, quiet_s=0.0, limit_s=0.0)
DEFAULT = SettleLimits()
BY_KIND = {
    # Hovering mostly changes nothing: do not wait long for a change that will not come.
    ActionKind.MOVE: SettleLimits(first_change_s=0.05),
    ActionKind.WAIT: SettleLimits(first_change_s=0.0),
    ActionKind.TERMINATE: AT_ONCE,
}


def host_strain() -> float:
    """How many want each processor of this machine, 1 to MAX_STRAIN."""
    return min(MAX_STRAIN, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def settle_limits_for(kind: ActionKind) -> SettleLimits:
    """The wait after one kind of action."""
    return BY_KIND.get(kind, DEFAULT)


def wait_until_settled(screen: Watched, settle: SettleLimits = DEFAULT) -> bool:
    """Wait; True when anything was drawn."""
    started, pace = time.monotonic(), screen.pace
    settle = pace.of(settle)
    window_s = settle.quiet_s / WINDOWS
    changed, calm, used_s = False, 0, screen.cpu_s()
    while (waited_s := time.monotonic() - started) < settle.limit_s:
        drawn = screen.wait_change(min(window_s, settle.limit_s - waited_s))
        before_s, used_s = used_s, screen.cpu_s()
        changed = changed or drawn
        calm = 0 if drawn or used_s - before_s > pace.busy_s else calm + 1
        if calm >= WINDOWS and (changed or time.monotonic() - started >= settle.first_change_s):
            break
    return changed
