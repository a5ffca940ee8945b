"""The coordinator of `rl_step`: groups whose turns the policy server generates, on recorded desktops.

A desktop here is a row of recorded screens: it answers every turn after `latency_s` with the next one,
whatever was said. All the rest is real: the trainer asks for groups and waits for them, trajectories talk to
the policy server turn by turn as env workers do, weight syncs are passed on to it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from benchmarks.gpu.recorded_world import RecordedWorld
from benchmarks.gpu.rl_step_screens import Screens
from testing.servers.route_server import Refused
from training.contracts import coordinator as routes
from training.contracts.route_types import Nothing, Route
from training.contracts.types import (
    Completion,
    Control,
    Group,
    RewardTerm,
    Task,
    Trajectory,
    TrajectoryStatus,
    Turn,
)
from training.contracts.weight_requests import WeightsRequest
from training.observations.turn_text import TREE
from workers.env.policy_client import PolicyClient

NEED_THE_ENGINE = (routes.WEIGHTS, routes.ENGINE, routes.CONTROL)
"""Routes that wait until the policy server is ready: trainer and engine start at the same time."""
WIDGETS = 29
"""Of a list; a digest has letters for 29 names."""
CARRIED_OUT = "The action was carried out. This is the screen now."


Span = tuple[float, float]
"""Begin and end. time.monotonic."""


class GivenUp(Exception):
    """Raised in a trajectory whose group is no longer wanted."""


@dataclass(kw_only=True)
class PlayedWorld(RecordedWorld):
    """Serves one trainer at a time; use as a context manager."""

    screens: Screens
    num_turns: int
    max_tokens: int
    latency_s: float = 0.0
    """Of a desktop, per turn."""
    shows: bool = True
    """The policy sees screens; else it reads their widgets."""
    concurrent: int = 256
    """Trajectories at once; what goes beyond waits."""
    is_ready: threading.Event = field(default_factory=threading.Event)
    """The policy server answers."""
    why_not: str = ""
    """Said instead, when it never will."""
    waited_s: float = 0.0
    """How long weight syncs waited for the policy server to start."""
    last_step: int = 0
    """The trainer is asked to leave after this step; 0 = never."""
    times: dict[int, float] = field(default_factory=dict)
    """Step -> when it was reported. time.monotonic."""
    played: dict[int, list[Trajectory]] = field(default_factory=dict)
    """Step -> the trajectories that were asked for it and ended."""

    turn_spans: list[Span] = field(default_factory=list)
    """When each turn was asked for and answered."""
    sync_spans: list[Span] = field(default_factory=list)
    """When the engine was held for each weight sync."""

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(self.concurrent)
        self._clients = threading.local()
        self._changed = threading.Condition(self.lock)
        self._num_asked = 0
        self._wanted: set[int] = set()
        """Groups that are being played."""
        self._run = 0
        self._sync_began = 0.0

    def __exit__(self, *_: object) -> None:
        self.start_anew()
        self._threads.shutdown(cancel_futures=True)
        super().__exit__()

    def start_anew(self) -> None:
        """Forget what a trainer reported, and give up on what it asked for."""
        with self.lock:
            super().start_anew()
            self._wanted.clear()
            self.times.clear()
            self.played.clear()
            self.turn_spans.clear()
            self.sync_spans.clear()
            self._num_asked = 0
            self.waited_s = 0.0
            self._run += 1

    def metrics(self) -> dict[int, dict[str, float]]:
        """Step -> everything that was reported for it."""
        found: dict[int, dict[str, float]] = {}
        for point in list(self.seen["/metrics"]):
            found.setdefault(point["step"], {}).update(point["values"])
        return found

    def _handlers(self) -> dict[Route[Any, Any], Callable[[Any], Any]]:
        return super()._handlers() | {routes.CONTROL: self._control, routes.CANCEL_GROUP: self._cancel}

    def _before(self, route: Route[Any, Any], asked: Any) -> None:
        if route in NEED_THE_ENGINE:
            began = time.monotonic()
            self.is_ready.wait()
            if route is routes.WEIGHTS:
                self.waited_s += time.monotonic() - began
            if self.why_not:
                raise Refused(409, self.why_not)
        super()._before(route, asked)
        if route is routes.METRICS:
            self.times[asked.step] = time.monotonic()

    def _control(self, _asked: Nothing) -> routes.ControlAnswer:
        is_over = self.last_step > 0 and self.last_step in self.times
        return routes.ControlAnswer(
            command=Control.CANCEL if is_over else Control.RUN, needs_weights=self._needs_weights()
        )

    def _cancel(self, group: routes.GroupId) -> Nothing:
        with self.lock:
            self._wanted.discard(group.group_id)
        return Nothing()

    def _sync_weights(self, request: WeightsRequest) -> routes.WeightsSynced:
        if request.stage in ("begin", "load"):
            self._sync_began = time.monotonic()
        answer = super()._sync_weights(request)
        if request.stage in ("commit", "load"):
            self.sync_spans.append((self._sync_began, time.monotonic()))
        return answer

    def _finished(self, query: routes.FinishedQuery) -> routes.FinishedGroups:
        with self._changed:
            self._changed.wait_for(lambda: len(self.groups) > query.after, query.wait)
            return super()._finished(query)

    def _group(self, wanted: routes.SampleGroup) -> routes.GroupId:
        with self.lock:
            task = next(task for task in self.tasks if task.task_id == wanted.task_id)
            self._num_asked += 1
            number = self._num_asked
            self._wanted.add(number)
            futures = [
                self._threads.submit(self._play, self._run, number, member, task, wanted)
                for member in range(wanted.size)
            ]
        box = [len(futures)]

        def ended(_future: Future[Trajectory]) -> None:
            with self._changed:
                box[0] -= 1
                if not box[0] and number in self._wanted:
                    self._finish(number, task, wanted, [future.result() for future in futures])

        for future in futures:
            future.add_done_callback(ended)
        return routes.GroupId(group_id=number)

    def _finish(self, number: int, task: Task, wanted: routes.SampleGroup, members: list[Trajectory]) -> None:
        self._wanted.discard(number)
        self.groups.append(
            Group(
                group_id=number,
                task=task,
                purpose=wanted.purpose,
                step=wanted.step,
                trajectories=tuple(members),
            )
        )
        self.played.setdefault(wanted.step, []).extend(members)
        self._changed.notify_all()

    def _play(self, run: int, group: int, member: int, task: Task, wanted: routes.SampleGroup) -> Trajectory:
        """One trajectory, turn by turn. Whatever fails makes it an errored member, as on real desktops."""
        name = f"run{run}-{group}-{member}"
        turns: list[Turn] = []
        made: dict[str, Any] = {"trajectory_id": group * 1000 + member, "group_id": group, "task": task}
        try:
            client = self._client()
            for index in range(self.num_turns):
                if run != self._run or group not in self._wanted:
                    raise GivenUp(name)
                turns.append(self._turn(client, name, (group, member, index), task, wanted))
            client.forget(name)
        except Exception as error:  # noqa: BLE001 - an episode's edge
            if not isinstance(error, GivenUp):
                self.seen["errors"].append(f"{name}: {error!r}"[:300])
            return Trajectory(**made, status=TrajectoryStatus.ERRORED, error=str(error)[:300])
        return Trajectory(**made, status=TrajectoryStatus.TERMINATED, turns=tuple(turns), **_rewarded(turns))

    def _turn(
        self,
        client: PolicyClient,
        name: str,
        place: tuple[int, int, int],
        task: Task,
        wanted: routes.SampleGroup,
    ) -> Turn:
        group, member, index = place
        digest, png = self.screens.of(group, member, index, members=wanted.size, turns=self.num_turns)
        if self.latency_s:
            time.sleep(self.latency_s)
        text = CARRIED_OUT if index else task.instruction
        if not self.shows:
            text = f"{text}\n\n{TREE}\n{widgets(digest)}"
        asked = time.monotonic()
        completion: Completion = client.complete(
            name, turn_index=index, text=text, screenshot=png if self.shows else None,
            temperature=wanted.temperature, max_tokens=self.max_tokens,
        )  # fmt: skip
        self.turn_spans.append((asked, time.monotonic()))
        return Turn(index=index, observation=self.screens.seen(digest, text), completion=completion)

    def _client(self) -> PolicyClient:
        """This thread's."""
        if not hasattr(self._clients, "client"):
            self._clients.client = self.policy.client()
        return self._clients.client


def widgets(digest: str) -> str:
    """A list of widgets as long as a picture is; another screen, other widgets."""
    return "\n".join(
        f'button "{digest[2 * place : 2 * place + 6]}" {30 * place},{int(digest[place : place + 2], 16)}'
        for place in range(WIDGETS)
    )


def _rewarded(turns: list[Turn]) -> dict[str, Any]:
    """Score and reward: what random weights can differ in, the share of odd token ids."""
    ids = [token for turn in turns if turn.completion for token in turn.completion.token_ids]
    reward = sum(token % 2 for token in ids) / max(len(ids), 1)
    term = RewardTerm(name="task_score.v1", value=reward, weight=1.0, contribution=reward)
    return {"score": reward, "reward": reward, "terms": (term,)}
