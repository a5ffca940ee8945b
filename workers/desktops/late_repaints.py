"""Wait for what programs do late: by a timer, or because a busy machine lets them wait.

`screen_settling` sees what was drawn and computed. A program that answers a click after 400 ms by a timer
does neither until then; on a busy machine one that wants to compute uses no processor either. Both are asked
for once the screen is at rest, so a turn without them costs one question. Timers that bring nothing to the
screen, a cursor's or a clock's, are soon not waited for any more.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from workers.desktops.agent_contract import Waiting
from workers.desktops.screen_settling import SettleLimits, Watched, wait_until_settled

HORIZON_S = 0.55
"""A timer that ends within this time is waited for."""
FORESEEN_S = 2.0
"""One that ends within this time is said beside the picture."""
GRACE_S = 0.04
"""From the end of a timer to what it draws."""
IN_VAIN, LEAST_TRUST = 2, -3
"""A kind of timer is waited for until this many more were in vain than not; successes count up to a limit."""

Kind = tuple[str, int]
"""Program, and about how long it waits: a menu's delay and an autosave of one program differ."""


class Unsettled(StrEnum):
    """Why a picture may not be what an action led to."""

    MOVING = "moving"
    """The screen, or a program, did not come to rest in the time that it was given."""
    DUE = "due"
    """A program goes on by itself in a moment, later than was waited for."""
    LATER = "later"
    """The screen changed after the picture was taken, before the next action."""


@dataclass
class LateRepaints:
    """What is known of the timers of a desktop's programs, over all its trajectories."""

    ask: Callable[[], Waiting | None]
    _in_vain: Counter[Kind] = field(default_factory=Counter)
    _foreseen: dict[Kind, float] = field(default_factory=dict)
    """When a timer ends, of those that were not waited for."""

    def wait(self, screen: Watched, settle: SettleLimits) -> Unsettled | None:
        """Until the screen has reacted and rests, timers included; else why it does not."""
        if settle.limit_s == 0:
            return None
        deadline = time.monotonic() + screen.pace.of(settle).limit_s
        wait_until_settled(screen, settle)
        waited: set[Kind] = set()
        drawn_at, has_brought = time.monotonic(), False
        while (left_s := deadline - time.monotonic()) > 0:
            now = self.ask()
            due = self._due(now, HORIZON_S) if now and time.monotonic() < drawn_at + HORIZON_S else {}
            if now is None or not (now.num_working or due):
                self._learn(() if has_brought else waited, is_drawn=False)
                return self._found(now)
            is_drawn = False
            if not now.num_working:
                waited |= due.keys()
                is_drawn = screen.wait_change(min(left_s, max(due.values()) + GRACE_S))
            left_s = max(0.0, deadline - time.monotonic())
            rest = SettleLimits(first_change_s=0.0, limit_s=left_s / screen.pace.limit)
            if wait_until_settled(screen, rest) or is_drawn:
                self._learn(waited, is_drawn=True)
                waited, drawn_at, has_brought = set(), time.monotonic(), True
        self._found(self.ask())
        return Unsettled.MOVING

    def look_later(self, *, is_changed: bool) -> None:
        """Reported at the next look: what the timers that were not waited for have brought."""
        ended = {kind for kind, moment in self._foreseen.items() if is_changed or time.monotonic() > moment}
        self._learn(ended, is_drawn=is_changed)
        self._foreseen = {kind: moment for kind, moment in self._foreseen.items() if kind not in ended}

    def foreseen_s(self) -> float:
        """Until the last of the timers that were not waited for ends."""
        return max(self._foreseen.values(), default=0.0) - time.monotonic()

    def forget(self) -> None:
        """The desktop is clean: no program waits for anything. What was learnt of programs stays."""
        self._foreseen = {}

    def _due(self, now: Waiting, within_s: float) -> dict[Kind, float]:
        kinds = {kind_of(name, left_s): left_s for name, left_s in now.timers if left_s <= within_s}
        return {kind: left_s for kind, left_s in kinds.items() if self._in_vain[kind] < IN_VAIN}

    def _learn(self, kinds: Iterable[Kind], *, is_drawn: bool) -> None:
        for kind in kinds:
            self._in_vain[kind] = max(LEAST_TRUST, self._in_vain[kind] + (-1 if is_drawn else 1))

    def _found(self, now: Waiting | None) -> Unsettled | None:
        """At the end: what is still to come."""
        due = self._due(now, FORESEEN_S) if now else {}
        due = {kind: left_s for kind, left_s in due.items() if left_s > HORIZON_S}
        self._foreseen = {kind: time.monotonic() + left_s + GRACE_S for kind, left_s in due.items()}
        return Unsettled.DUE if due else None


def kind_of(program: str, left_s: float) -> Kind:
    """By tenths of a second where it is waited for, else by whole ones."""
    return program, int(10 * left_s) if left_s <= HORIZON_S else 100 + int(left_s)
