"""Makes turns of what a person does.

The web process's proxy sees the input and writes it down; here the screen is read often enough to know what
it showed before each action.
"""

import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

from training.contracts.types import Action, ActionKind, Observation, Source, Turn
from webapp.worker_door.assignments import Assignment
from webapp.worker_door.human_control import ControlNow, HumanAction, human_actions, refresh_control
from webapp.worker_door.trajectories import close_turn
from workers.desktops.frame import Frame
from workers.env.measured_turn import measured_turn
from workers.env.turn_reports import begin_turn
from workers.environments.registry import Environment
from workers.reports.current import reports

POLL_S = 0.1
"""How often the screen and the database are read while a person acts."""
KEPT_FRAMES = 12
DRAIN_LIMIT_S = 3.0
"""How long the proxy may need to write down the last actions after the end."""


class TurnRecorder:
    """Makes turns of one person's actions."""

    def __init__(
        self,
        control: ControlNow,
        assignment: Assignment,
        environment: Environment,
        turns: list[Turn],
        after_turn: Callable[[], None],
    ) -> None:
        self._control = control
        self._row = assignment.row
        self._assignment = assignment
        self._environment = environment
        self._instruction = assignment.task.instruction
        self._turns = turns
        self._after_turn = after_turn
        self._frames: deque[Frame] = deque([environment.observe()], maxlen=KEPT_FRAMES)
        self._next_index = 0
        self._open: tuple[Frame, Observation] | None = None
        self.last_action: Action | None = None

    def poll(self) -> None:
        """See what the screen shows now and what the person did since the last call."""
        frame = self._environment.observe()
        if frame.raw_digest != self._frames[-1].raw_digest:
            self._frames.append(frame)
        for done in reports().request(human_actions, self._control.pk, self._next_index):
            self._record(done)

    def num_turns(self) -> int | None:
        """Turns so far; None while one is under way."""
        return len(self._turns) if self._open is None else None

    def drain(self) -> None:
        """After the end: wait until the proxy has written down everything, then take it."""
        deadline = time.monotonic() + DRAIN_LIMIT_S
        while not self._is_drained() and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self.poll()
        if self._open is not None:
            self._close(None)

    def _is_drained(self) -> bool:
        return reports().request(refresh_control, self._control.pk).is_drained

    def record_finish(self, claim: str) -> Action:
        """The closing turn, as an agent would take it."""
        action = Action(kind=ActionKind.TERMINATE, status="failure" if claim == "failure" else "success")
        self._begin(self._environment.observe())
        self._close(action)
        return action

    def _record(self, done: HumanAction) -> None:
        """Open a turn when an action has begun, close it when it is over."""
        if self._open is None:
            self._begin(self._frame_before(done.began_at.timestamp()))
        if done.action is not None:
            self._close(done.action)
            self._next_index = done.index + 1

    def _frame_before(self, moment: float) -> Frame:
        """What the person saw when they began; of an action that began before all kept frames, the oldest."""
        earlier = [frame for frame in self._frames if frame.taken_at <= moment]
        return earlier[-1] if earlier else self._frames[0]

    def _begin(self, frame: Frame) -> None:
        index = len(self._turns)
        text = self._instruction if index == 0 else ""
        observation, _ = begin_turn(self._assignment, index, frame, text, Source.HUMAN)
        self._open = frame, observation

    def _close(self, action: Action | None) -> None:
        """End the open turn; without an action when the proxy went away in the middle of it."""
        assert self._open is not None
        before, observation = self._open
        is_last = action is not None and action.kind is ActionKind.TERMINATE
        after = before if is_last else self._frames[-1]
        turn = Turn(
            index=len(self._turns),
            source=Source.HUMAN,
            observation=observation,
            action=action,
            action_error=None if action else "the connection ended before the action did",
            screen_changed=None if is_last else after.raw_digest != before.raw_digest,
            measured=measured_turn(action, before, after),
        )
        self._turns.append(turn)
        self._open = None
        self.last_action = action or self.last_action
        reports().report(close_turn, self._row.pk, turn, "", datetime.now(UTC), None)
        if not is_last:
            self._after_turn()
