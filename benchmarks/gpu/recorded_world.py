"""A coordinator whose groups are recorded once and then repeated: the same step always gets the same data.

So the loss curve of a trainer depends on nothing but the trainer's own state. Weight syncs are real: they are
passed on to the policy server, as the gpu worker does.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import httpx
from pydantic_core import to_jsonable_python

from benchmarks.gpu.policy_process import TOKEN, PolicyProcess
from benchmarks.gpu.screens import screen_png
from testing.servers.route_server import Refused, RouteServer
from training.contracts import coordinator as routes
from training.contracts.eye_test import EyeTestAnswer
from training.contracts.route_types import Nothing, Route
from training.contracts.types import (
    Completion,
    Control,
    Group,
    Observation,
    RewardTerm,
    Task,
    Trajectory,
    TrajectoryStatus,
    Turn,
)
from training.contracts.weight_requests import WeightsRequest

TURNS = 2
VARIANTS = 2
"""Recordings of each task; steps take them in turn."""
Watcher = Callable[[str, str, dict[str, Any]], None]
"""(moment, route, body): before the answer to a request is made."""


def make_tasks(count: int, screen: tuple[int, int]) -> list[Task]:
    return [
        Task(
            task_id=f"recorded-{number}",
            instruction=f"Open window {number}.",
            family="recorded",
            screen=screen,
        )
        for number in range(count)
    ]


Recorded = dict[str, list[list[Trajectory]]]
"""task_id -> [variant][member]"""


def record(policy: PolicyProcess, tasks: list[Task], size: int, frames: Path, max_tokens: int) -> Recorded:
    """VARIANTS groups of `size` trajectories per task, drawn by the policy server now."""
    jobs = [(task, variant, place) for task in tasks for variant in range(VARIANTS) for place in range(size)]

    def play(job: tuple[Task, int, int]) -> Trajectory:
        task, variant, place = job
        client = policy.client()
        turns = [
            _turn(client, f"{task.task_id}-{variant}-{place}", index, task, frames, max_tokens)
            for index in range(TURNS)
        ]
        reward = sum(turn.completion.token_ids[0] % 2 for turn in turns if turn.completion) / TURNS
        return Trajectory(
            trajectory_id=1 + jobs.index(job),
            group_id=0,
            task=task,
            status=TrajectoryStatus.TERMINATED,
            turns=tuple(turns),
            score=float(reward == 1),
            reward=reward,
            terms=(RewardTerm(name="task_score.v1", value=reward, weight=1.0, contribution=reward),),
        )

    with ThreadPoolExecutor(8) as threads:
        played = list(threads.map(play, jobs))
    recorded: dict[str, list[list[Trajectory]]] = {
        task.task_id: [[] for _ in range(VARIANTS)] for task in tasks
    }
    for (task, variant, _), trajectory in zip(jobs, played, strict=True):
        recorded[task.task_id][variant].append(trajectory)
    return recorded


def _turn(client: Any, name: str, index: int, task: Task, frames: Path, max_tokens: int) -> Turn:
    png = screen_png(abs(hash_of(task.task_id)) % 10_000 + index, task.screen)
    digest = hashlib.sha256(png).hexdigest()
    path = frames / digest[:2] / f"{digest}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png)
    text = task.instruction if index == 0 else "It changed."
    completion: Completion = client.complete(
        name, turn_index=index, text=text, screenshot=png, temperature=1.0, max_tokens=max_tokens
    )
    seen = Observation(sha256=digest, width=task.screen[0], height=task.screen[1], text=text)
    return Turn(index=index, observation=seen, completion=completion)


def hash_of(text: str) -> int:
    """The same in every process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@dataclass
class RecordedWorld:
    """Serves one trainer at a time; use as a context manager."""

    policy: PolicyProcess
    tasks: list[Task]
    recorded: Recorded
    frames: Path
    watch: Watcher = lambda moment, route, body: None
    seen: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    groups: list[Group] = field(default_factory=list)
    draws: bool = False
    """Whether the engine also draws a turn for every group, which nobody trains: it must be awake then."""
    rests: list[dict[str, Any]] = field(default_factory=list)
    """What the engine was told to do with its memory, and how long it took."""
    drawn_by: list[int] = field(default_factory=list)
    """Version that drew each of those turns."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __enter__(self) -> Self:
        self.server = RouteServer(self._handlers(), token=TOKEN, before=self._before)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close()

    def environment(self) -> dict[str, str]:
        """Of the trainer."""
        return {
            "DESKHAND_COORDINATOR_URL": self.server.url,
            "DESKHAND_COORDINATOR_TOKEN": TOKEN,
            "DESKHAND_FRAMES_DIR": str(self.frames),
        }

    def start_anew(self) -> None:
        """Forget what a trainer reported."""
        with self.lock:
            for what in (self.seen, self.groups, self.rests, self.drawn_by):
                what.clear()

    def curve(self, name: str) -> dict[int, float]:
        """Step -> the last value that was reported for it."""
        points = self.seen["/metrics"]
        return {point["step"]: point["values"][name] for point in points if name in point["values"]}

    def _handlers(self) -> dict[Route[Any, Any], Callable[[Any], Any]]:
        """Routes that answer nothing are only remembered."""
        silent = {route: lambda _: Nothing() for route in routes.ROUTES if route.answers is Nothing}
        return silent | {
            routes.TASKS: lambda _: self.tasks,
            routes.SAMPLE_GROUP: self._group,
            routes.FINISHED_GROUPS: self._finished,
            routes.CHECKPOINT_ROOM: lambda _: routes.RoomAnswer(),
            routes.CHECKPOINTS_IN_USE: lambda _: routes.CheckpointPaths(paths=()),
            routes.CONTROL: lambda _: routes.ControlAnswer(
                command=Control.RUN, needs_weights=self._needs_weights()
            ),
            routes.WEIGHTS: self._sync_weights,
            routes.EYES: lambda asked: EyeTestAnswer.model_validate(
                self._ask_policy("POST", "/eyes", asked.model_dump(mode="json"))
            ),
            routes.ENGINE: self._rest,
        }

    def _before(self, route: Route[Any, Any], asked: Any) -> None:
        body = to_jsonable_python(asked)
        if route is routes.ENGINE:
            return
        with self.lock:
            if route is routes.WEIGHTS:
                kept = ("channel", "stage", "policy_version")
                self.seen[route.path].append({key: body.get(key) for key in kept})
            elif route.method == "POST":
                self.seen[route.path].append(body)
            is_object = route.method == "POST" and isinstance(body, dict)
            self.watch("before", route.path, body if is_object else {})

    def _finished(self, query: routes.FinishedQuery) -> routes.FinishedGroups:
        with self.lock:
            return routes.FinishedGroups(cursor=len(self.groups), groups=tuple(self.groups[query.after :]))

    def _group(self, wanted: routes.SampleGroup) -> routes.GroupId:
        with self.lock:
            task = next(task for task in self.tasks if task.task_id == wanted.task_id)
            number = len(self.groups) + 1
            if self.draws:
                turn = _turn(self.policy.client(), f"drawn-{time.monotonic_ns()}", 0, task, self.frames, 8)
                self.drawn_by.append(turn.completion.policy_version if turn.completion else -1)
            members = self.recorded[task.task_id][(wanted.step - 1) % VARIANTS]
            fresh = tuple(_as_of(member, number, wanted.policy_version or 0) for member in members)
            group = Group(
                group_id=number, task=task, purpose=wanted.purpose, step=wanted.step, trajectories=fresh
            )
            self.groups.append(group)
            return routes.GroupId(group_id=number)

    def _sync_weights(self, request: WeightsRequest) -> routes.WeightsSynced:
        answer = self._ask_policy("POST", "/weights", request.model_dump(mode="json"))
        if request.stage in ("load", "commit"):
            answer["canary"] = self._ask_policy("POST", "/canary", {})
        return routes.WeightsSynced.model_validate(answer)

    def _rest(self, wanted: routes.EngineCommand) -> Nothing:
        started = time.monotonic()
        self._ask_policy("POST", f"/{wanted.command}", {})
        self.rests.append({"command": wanted.command, "seconds": round(time.monotonic() - started, 3)})
        return Nothing()

    def _needs_weights(self) -> bool:
        return bool(self._ask_policy("GET", "/health").get("needs_weights", False))

    def _ask_policy(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """A policy server that refuses or is away is told as the gpu worker tells it."""
        try:
            return self.policy.call(method, path, body)
        except httpx.HTTPStatusError as error:
            status = 409 if error.response.is_client_error else 503
            raise Refused(status, error.response.text[:500]) from error
        except httpx.TransportError as error:
            raise Refused(503, str(error)) from error


def _as_of(member: Trajectory, group_id: int, policy_version: int) -> Trajectory:
    """The recording as if the policy of now had drawn it: nothing is dropped for its age."""
    turns = tuple(
        turn.model_copy(
            update={
                "completion": turn.completion.model_copy(
                    update={"policy_version": policy_version, "policy_versions": ()}
                )
            }
        )
        for turn in member.turns
        if turn.completion is not None
    )
    return member.model_copy(update={"group_id": group_id, "turns": turns})
