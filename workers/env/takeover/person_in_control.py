"""A person in the agent's seat: the agent waits while somebody acts, and what they do becomes turns.

    nobody -> (asked) -> agent paused, person acts: [turn opens with the screen before -> closes]*
           -> handed back | expired: the agent goes on       (a demonstration has no agent: cancelled)
           -> finished: one more turn says so, then the evaluator decides
The proxy in the web process sees the input and writes it down; here the screen is looked at often enough
to know what it showed before each action.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from django.utils import timezone

from training.contracts.types import Action, ActionKind, Observation, Source, Turn
from workers.desktops.contract import EnvError
from workers.desktops.leased_desktop import Frame
from workers.env import reporting
from workers.env.reporting import Assignment
from workers.env.takeover import reports
from workers.env.takeover.reports import Control, ControlStatus, Deed
from workers.env.takeover.screen_relay import Relay
from workers.environments.contract import Watchable
from workers.environments.registry import Environment

LOOK_S = 0.1
"""How often the screen and the database are looked at while a person acts."""
KEPT_FRAMES = 12
DRAIN_LIMIT_S = 3.0
"""How long the proxy may need to write down the last actions after the end."""
ABANDONED_S = 60.0
"""A demonstration whose person stays away this long is cancelled."""
NO_SCREEN = (
    "this {provider} desktop has no VNC server that a person could use; see its host on the fleet page"
)
TOLD = "A person used this desktop since your last action."


class Abandoned(Exception):
    """Raised when nobody demonstrates any more: there is no agent to go on."""


@dataclass(frozen=True, slots=True)
class Visit:
    """What became of a person's time in the seat."""

    is_finished: bool
    last_action: Action | None
    duration_s: float

    def text_for_agent(self, text: str, num_decided: int) -> str:
        """What the agent is told at its next turn; `text` is what it would have been told."""
        return TOLD if num_decided else text


_relay: Relay | None = None
_relay_lock = threading.Lock()


def _relay_of_process() -> Relay:
    global _relay
    with _relay_lock:
        if _relay is None:
            _relay = reports.make_relay()
        return _relay


@contextlib.contextmanager
def watched(trajectory_id: int, environment: Environment, *, is_persons: bool = False) -> Iterator[None]:
    """Inside the block people can watch the environment and ask for control, if it has a screen to offer.

    is_persons: somebody is to demonstrate on it. Raises EnvError when they could not.
    """
    if not isinstance(environment, Watchable) or not environment.vnc_socket:
        if is_persons:
            raise EnvError(NO_SCREEN.format(provider=environment.provider), permanent=True)
        yield
        return
    with _relay_of_process().offered(trajectory_id, lambda: environment.vnc_socket) as addresses:
        reports.open_screen(trajectory_id, addresses)
        try:
            yield
        finally:
            reports.close_screen(trajectory_id)


class Stops(Protocol):
    def __call__(self) -> bool:
        """True when the trajectory was ended from outside."""


class Seat:
    """Asks between the agent's turns whether a person wants the desktop, and lets them have it."""

    def __init__(self, assignment: Assignment, environment: Environment, turns: list[Turn]) -> None:
        self._row = assignment.row
        self._task = assignment.task
        self._has_agent = assignment.source is not Source.HUMAN
        self._environment = environment
        self._turns = turns
        """The episode's own list; a person's turns are added to it."""

    def visit(self, is_stopped: Stops) -> Visit | None:
        """Let a person act until they stop; None when nobody wants to.

        Raises Abandoned when there is no agent either.
        """
        started = time.monotonic()
        while True:
            control = reports.active_control(self._row.pk)
            if control is not None and reports.grant(control):
                visit = self._attend(control, is_stopped, started)
                if visit.is_finished or self._has_agent or is_stopped():
                    return visit
                started = time.monotonic()
            elif self._has_agent:
                return None
            elif time.monotonic() - started > ABANDONED_S or is_stopped():
                raise Abandoned
            time.sleep(LOOK_S)

    def _attend(self, control: Control, is_stopped: Stops, started: float) -> Visit:
        """Record what the person does until control is over."""
        recorder = TurnRecorder(control, self._row, self._environment, self._task.instruction, self._turns)
        while control.status == ControlStatus.HELD and not is_stopped():
            recorder.look()
            time.sleep(LOOK_S)
            control = reports.look_again(control)
        recorder.drain()
        is_finished = control.status == ControlStatus.FINISHED
        last_action = recorder.say_done(control.claim) if is_finished else recorder.last_action
        return Visit(is_finished, last_action, time.monotonic() - started)


class TurnRecorder:
    """Makes turns of one person's actions."""

    def __init__(
        self,
        control: Control,
        row: reporting.TrajectoryRow,
        environment: Environment,
        instruction: str,
        turns: list[Turn],
    ) -> None:
        self._control = control
        self._row = row
        self._environment = environment
        self._instruction = instruction
        self._turns = turns
        self._frames: deque[Frame] = deque([environment.observe()], maxlen=KEPT_FRAMES)
        self._next_deed = 0
        self._open: tuple[Frame, Observation] | None = None
        self.last_action: Action | None = None

    def look(self) -> None:
        """See what the screen shows now and what the person did since the last look."""
        frame = self._environment.observe()
        if frame.raw_digest != self._frames[-1].raw_digest:
            self._frames.append(frame)
        for deed in reports.deeds(self._control, self._next_deed):
            self._take(deed)

    def drain(self) -> None:
        """After the end: wait until the proxy has written down everything, then take it."""
        deadline = time.monotonic() + DRAIN_LIMIT_S
        while not reports.look_again(self._control).is_drained and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        self.look()
        if self._open is not None:
            self._close(None)

    def say_done(self, claim: str) -> Action:
        """The closing turn, as an agent would take it."""
        action = Action(kind=ActionKind.TERMINATE, status="failure" if claim == "failure" else "success")
        self._begin(self._environment.observe())
        self._close(action)
        return action

    def _take(self, deed: Deed) -> None:
        """Open a turn when an action has begun, close it when it is over."""
        if self._open is None:
            self._begin(self._frame_before(deed.began_at.timestamp()))
        if deed.action is not None:
            self._close(deed.action)
            self._next_deed = deed.index + 1

    def _frame_before(self, moment: float) -> Frame:
        """What the person saw when they began; of an action that began before all kept frames, the oldest."""
        earlier = [frame for frame in self._frames if frame.taken_at <= moment]
        return earlier[-1] if earlier else self._frames[0]

    def _begin(self, frame: Frame) -> None:
        index = len(self._turns)
        text = self._instruction if index == 0 else ""
        self._open = (frame, reporting.open_turn(self._row, index, frame, text, Source.HUMAN))

    def _close(self, action: Action | None) -> None:
        """End the open turn; without an action when the proxy went away in the middle of it."""
        assert self._open is not None
        before, observation = self._open
        is_last = action is not None and action.kind is ActionKind.TERMINATE
        turn = Turn(
            index=len(self._turns),
            source=Source.HUMAN,
            observation=observation,
            action=action,
            action_error=None if action else "the connection ended before the action did",
            screen_changed=None if is_last else self._frames[-1].raw_digest != before.raw_digest,
        )
        self._turns.append(turn)
        self._open = None
        self.last_action = action or self.last_action
        reporting.close_turn(self._row, turn, "", timezone.now())
