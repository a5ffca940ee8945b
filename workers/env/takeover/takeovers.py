"""A person in the agent's place: the agent waits while the person acts, and what they do becomes turns.

no control -> requested -> agent paused, person acts: [turn opens with the screen before -> closes]*
       -> handed back | expired: the agent goes on       (a demonstration has no agent: cancelled)
       -> finished: one more turn says so, then the evaluator decides
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from training.contracts.types import Action, Source, Turn
from webapp.worker_door import human_control as calls
from webapp.worker_door.assignments import Assignment
from webapp.worker_door.human_control import ControlNow, ControlStatus
from webapp.worker_door.trajectories import TrajectoryNow
from workers.env.takeover.task_draft import TaskDraft
from workers.env.takeover.turn_recorder import POLL_S, TurnRecorder
from workers.environments.contract import Watchable
from workers.environments.registry import Environment
from workers.reports.current import reports

ABANDONED_S = 60.0
"""A demonstration whose person stays away this long is cancelled."""
NOTICE = "A person used this desktop since your last action."


class DemonstrationAbandoned(Exception):
    """Raised when a demonstration has lost its person, or made a task: there is no agent to go on."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """What became of a person's time in control."""

    is_finished: bool
    last_action: Action | None
    duration_s: float
    has_acted: bool = True
    """Off: the agent waited for a person who only watched."""

    def text_for_agent(self, text: str, num_decided: int) -> str:
        """What the agent reads at its next turn; `text` is what it would have read."""
        return NOTICE if num_decided and self.has_acted else text


class Takeovers:
    """Asks between the agent's turns whether a person wants the desktop, and lets them have it."""

    def __init__(
        self,
        assignment: Assignment,
        environment: Environment,
        turns: list[Turn],
        after_turn: Callable[[], None],
    ) -> None:
        self._assignment = assignment
        self._row = assignment.row
        self._has_agent = assignment.source is not Source.HUMAN
        self._environment = environment
        self._turns = turns
        """The rollout's own list; a person's turns are added to it."""
        self._after_turn = after_turn
        self._draft = TaskDraft(assignment, environment) if assignment.is_draft else None

    def may_begin(self, now: TrajectoryNow) -> bool:
        """Whether there is anything to `wait` for: a person who wants the desktop, or a demonstration."""
        return now.has_control or not self._has_agent

    def wait(self, has_ended: Callable[[], bool]) -> Takeover | None:
        """Let a person act until they stop; None when no person wants to.

        Raises DemonstrationAbandoned when there is no agent either.
        """
        started, has_waited = time.monotonic(), False
        while True:
            control = self._active_control()
            if control is not None and control.is_watch:
                has_waited = True
                if has_ended():
                    return None
            elif control is not None and reports().request(calls.grant_control, control.pk):
                now = reports().request(calls.refresh_control, control.pk)
                takeover = self._attend(now, has_ended, started)
                if takeover.is_finished or self._has_agent or has_ended():
                    return takeover
                started = time.monotonic()
            elif self._has_agent:
                waited_s = time.monotonic() - started
                return Takeover(False, None, waited_s, has_acted=False) if has_waited else None
            elif time.monotonic() - started > ABANDONED_S or has_ended():
                raise DemonstrationAbandoned
            time.sleep(POLL_S)

    def _active_control(self) -> ControlNow | None:
        """The control that is requested or held."""
        if not reports().trajectory_now(self._row.pk).has_control:
            return None
        return reports().request(calls.active_control, self._row.pk)

    def _attend(self, control: ControlNow, has_ended: Callable[[], bool], started: float) -> Takeover:
        """Record what the person does until control is over."""
        recorder = TurnRecorder(control, self._assignment, self._environment, self._turns, self._after_turn)
        while control.status == ControlStatus.HELD and not has_ended():
            recorder.poll()
            if self._draft:
                self._draft.poll(recorder.num_turns)
            time.sleep(POLL_S)
            control = reports().request(calls.refresh_control, control.pk)
        recorder.drain()
        if isinstance(self._environment, Watchable):
            self._environment.let_go()  # a web process that was killed has let go of nothing
        is_finished = control.status == ControlStatus.FINISHED
        if is_finished and self._draft:
            self._draft.finish(len(self._turns))
            raise DemonstrationAbandoned  # what a task is made from is no try of one, and has no score
        last_action = recorder.record_finish(control.claim) if is_finished else recorder.last_action
        return Takeover(is_finished, last_action, time.monotonic() - started)
