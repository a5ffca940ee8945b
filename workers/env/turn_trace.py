"""Measures where the time of each turn goes (`training.contracts.turn_trace`)."""

import time
from collections.abc import Callable

from training.contracts.turn_trace import SpentMs, TurnPart, rounded


class TurnTrace:
    """Every moment belongs to the part whose lap ends next, so the parts add up to the wall time."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._since = now()
        self._spent: SpentMs = {}

    def lap(self, part: TurnPart, inside: SpentMs | None = None) -> None:
        """What passed since the last lap was `part`, but for what others measured `inside` it."""
        now = self._now()
        passed, self._since = 1000 * (now - self._since), now
        for name, value in (inside or {}).items():
            self._add(name, value)
            passed -= value
        self._add(part, max(0.0, passed))

    def skip(self) -> None:
        """What passed since the last lap is no part of a turn: a person was at the desktop."""
        self._since = self._now()

    def take(self) -> SpentMs:
        """The parts of a turn that is over."""
        spent, self._spent = self._spent, {}
        return rounded(spent)

    def _add(self, part: TurnPart, value: float) -> None:
        self._spent[part] = self._spent.get(part, 0.0) + value
