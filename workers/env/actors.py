"""What decides the next action: the policy server, a task's oracle, or nothing at all."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import httpx

from training.actions.coordinates import resized_size
from training.actions.parse_completion import parse_completion
from training.contracts.turn_trace import SpentMs
from training.contracts.types import Action, ActionKind, Completion, Observation, Task, Turn
from webapp.worker_door.assignments import Assignment
from webapp.worker_door.trajectories import read_screenshot
from workers.env.policy_client import PolicyClient, RecordedTurn
from workers.reports.current import reports
from workers.tasks.oracles import next_action

log = logging.getLogger(__name__)
T = TypeVar("T")

LIMIT_S = 60.0
"""Well beyond what the dispatcher needs to miss a gpu worker (15 s) on a busy machine."""
LOOK_S = 1.0


def ask_patiently(ask: Callable[[], T], is_over: Callable[[], bool]) -> tuple[T, float]:
    """Its answer, and the seconds in which there was no one to ask.

    A gpu worker that died is noticed after seconds. Until then each failed try would use up one of a place's
    few retries, and hundreds of tries take no time.
    Raises httpx.ConnectError or ConnectTimeout when the trajectory `is_over`, or after `LIMIT_S`.
    """
    missed_at: float | None = None
    while True:
        try:
            answer = ask()
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            now = time.monotonic()
            if missed_at is None:
                missed_at = now
                log.warning("the policy server is out of reach, asking on for %.0f s: %s", LIMIT_S, error)
            if is_over() or now - missed_at > LIMIT_S:
                raise
            time.sleep(LOOK_S)
        else:
            return answer, 0.0 if missed_at is None else time.monotonic() - missed_at


class NoPolicy(Exception):
    """Raised when the experiment's policy server is not (or no longer) there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What an actor wants at one turn: actions in order, at least one, or why there are none."""

    actions: tuple[Action, ...] = ()
    completion: Completion | None = None
    parse_error: str | None = None
    dialect: str = ""
    thought: str = ""
    spent_ms: SpentMs = field(default_factory=dict)
    """What the policy server measured."""


class Actor(Protocol):
    """Chooses the next action."""

    def decide(self, index: int, png: bytes, observation: Observation, turns: list[Turn]) -> Decision:
        """`turns` are the earlier ones. Raises PolicyError when the policy cannot answer."""
        ...

    def resume(self, turns: Sequence[Turn]) -> None:
        """Go on after turns that were recorded before. Raises PolicyError."""
        ...

    def close(self) -> None:
        """The trajectory is over."""
        ...


class PolicyActor:
    """Asks the policy server of the experiment's running attempt."""

    def __init__(self, assignment: Assignment) -> None:
        if not assignment.policy_url:
            raise NoPolicy("the experiment has no running policy server")
        self._assignment = assignment
        self._id = str(assignment.row.pk)
        self._client = PolicyClient(
            assignment.policy_url,
            assignment.policy_token,
            certificate=assignment.policy_certificate,
            timeout_s=assignment.config.desktops.turn_timeout_s,
        )
        self._num_turns = 0
        """The policy's own; a person may have taken turns between them."""

    def decide(self, index: int, png: bytes, observation: Observation, turns: list[Turn]) -> Decision:
        config = self._assignment.config
        completion, absent_s = ask_patiently(
            lambda: self._client.complete(
                self._id,
                turn_index=self._num_turns,
                text=observation.text,
                screenshot=png if config.prompt.shows_screen else None,
                temperature=self._assignment.temperature,
                max_tokens=config.sampling.max_completion_tokens,
            ),
            self._is_over,
        )
        if absent_s:
            completion = completion.model_copy(update={"waited_s": completion.waited_s + absent_s})
        self._num_turns += 1
        screen = (observation.width, observation.height)
        parsed = parse_completion(
            completion.text,
            dialect=config.prompt.dialect,
            space=config.prompt.coordinate_space,
            screen=screen,
            image=resized_size(
                screen,
                config.model.min_pixels,
                config.model.max_pixels,
                config.model.image_factor,
            ),
            most=config.prompt.actions_per_turn,
            boxes=observation.marks.boxes if observation.marks else (),
        )
        return Decision(
            actions=parsed.actions,
            completion=completion.model_copy(update={"spent_ms": {}}),
            spent_ms=completion.spent_ms,
            parse_error=parsed.error,
            dialect=parsed.dialect,
            thought=parsed.thought,
        )

    def resume(self, turns: Sequence[Turn]) -> None:
        """Its context is made of the tokens that were sampled then; a person's turns were never in it."""
        own = [turn for turn in turns if turn.completion is not None]
        if not own:
            return
        shows_screen = self._assignment.config.prompt.shows_screen
        recorded = [
            RecordedTurn(
                text=turn.observation.text,
                completion=turn.completion,
                screenshot=_screenshot(turn.observation) if shows_screen else None,
            )
            for turn in own
            if turn.completion is not None
        ]
        ask_patiently(lambda: self._client.resume(self._id, recorded), self._is_over)
        self._num_turns = len(own)

    def close(self) -> None:
        self._client.forget(self._id)

    def _is_over(self) -> bool:
        return reports().trajectory_now(self._assignment.row.pk).has_ended


def _screenshot(observation: Observation) -> bytes | None:
    """The lossless PNG of a recorded observation; None when it had none."""
    return reports().request(read_screenshot, observation.sha256) if observation.sha256 else None


class OracleActor:
    """Solves the task by its family's script, really driving the desktop."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def decide(self, index: int, png: bytes, observation: Observation, turns: list[Turn]) -> Decision:
        return Decision(actions=(next_action(self._task, turns),))

    def resume(self, turns: Sequence[Turn]) -> None:
        """It counts the turns itself."""

    def close(self) -> None:
        pass


class ScriptedActor:
    """Does what a script says, whatever the screen shows, and then says that it is done."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self._actions = actions
        self._num_before = 0
        """Turns that were not its own."""

    def decide(self, index: int, png: bytes, observation: Observation, turns: list[Turn]) -> Decision:
        done = Action(kind=ActionKind.TERMINATE, status="success")
        place = len(turns) - self._num_before
        return Decision(actions=(self._actions[place] if place < len(self._actions) else done,))

    def resume(self, turns: Sequence[Turn]) -> None:
        self._num_before = len(turns)

    def close(self) -> None:
        pass


class IdleActor:
    """Says at once that it is done: the do-nothing check of a task."""

    def decide(self, index: int, png: bytes, observation: Observation, turns: list[Turn]) -> Decision:
        return Decision(actions=(Action(kind=ActionKind.TERMINATE, status="success"),))

    def resume(self, turns: Sequence[Turn]) -> None:
        pass

    def close(self) -> None:
        pass
