"""A real HTTP coordinator over toy desktops: the same routes as the gpu worker's, in a thread."""

from __future__ import annotations

import asyncio
import base64
import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_jsonable_python

from testing.servers.route_server import Refused, RouteServer
from testing.training.toy_desktops import SCREEN, ToyDesktops, picture, toy_tasks
from training.contracts import coordinator as routes
from training.contracts.config import SamplingConfig
from training.contracts.eye_test import EyeTestAnswer, EyeTestRequest
from training.contracts.route_types import LOADING, Nothing, Route
from training.contracts.types import (
    Action,
    ActionKind,
    Control,
    Group,
    Purpose,
    Source,
    Trajectory,
    TrajectoryStatus,
)
from training.contracts.weight_requests import Canary, WeightsRequest
from training.sampler.engine import EngineSequence
from training.sampler.engines.request_batching import BatchingEngine
from training.sampler.eye_test import look
from training.sampler.weights.receive_in_process import LocalReceiver
from training.sampler.weights.receiver import WeightSyncHandler

TOKEN = "test-token"


@dataclass
class Wishes:
    """What a test wants the coordinator to do."""

    errored_members: int = 0
    """Members of every first request of a train task that end errored."""
    pause_after_groups: int = 0
    """From this number of finished groups on, /control says pause; 0 = never."""
    command: Control = Control.RUN
    failures: list[int] = field(default_factory=list)
    """Status codes to answer next, before any work."""
    loading: int = 0
    """Requests that are answered by "the policy server is loading", before any other failure."""
    in_background: bool = False
    """Groups are sampled by a thread of their own, in the order of asking."""
    refused_stages: tuple[str, ...] = ()
    """Steps of a weight sync that are answered with an error."""
    replay_entries: list[dict[str, Any]] = field(default_factory=list)
    demonstrations: list[Trajectory] = field(default_factory=list)
    shortages: Iterator[str] = field(default_factory=lambda: iter(()))
    """Answers, one each, to the next questions for a checkpoint's room."""
    checkpoints_in_use: list[str] = field(default_factory=list)


class ToyCoordinator:
    """Serves one trainer; `seen` holds what it reported, by route."""

    def __init__(self, desktops: ToyDesktops) -> None:
        self.desktops = desktops
        self.wishes = Wishes()
        self.seen: dict[str, list[Any]] = defaultdict(list)
        self.groups: list[Group] = []
        self.records_demonstrations = False
        """Whether oracle requests become demonstrations, like on a real coordinator."""
        self.tasks = {split: toy_tasks(split) for split in ("train", "heldout")}
        self.lock = threading.Lock()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.batched = BatchingEngine(desktops.engine, desktops.renderer.pixels)
        self.weight_sync = WeightSyncHandler(self.batched, LocalReceiver(self.batched, desktops.engine))
        self.asked: queue.Queue[tuple[int, routes.SampleGroup]] = queue.Queue()
        self.num_asked = 0
        threading.Thread(target=self._sample_in_background, daemon=True).start()
        self._server = RouteServer(self._handlers(), token=TOKEN, before=self._before)
        self.url = self._server.url

    def close(self) -> None:
        self._server.close()
        self.loop.call_soon_threadsafe(self.loop.stop)

    def environment(self) -> dict[str, str]:
        """Variables of a trainer that shall use this coordinator."""
        return {
            "DESKHAND_COORDINATOR_URL": self.url,
            "DESKHAND_COORDINATOR_TOKEN": TOKEN,
            "DESKHAND_FRAMES_DIR": str(self.desktops.frames),
        }

    def metric(self, name: str) -> list[float]:
        """All points of one metric, in order."""
        return [point["values"][name] for point in self.seen["/metrics"] if name in point["values"]]

    def _handlers(self) -> dict[Route[Any, Any], Callable[[Any], Any]]:
        """Routes that answer nothing are only remembered."""
        silent = {route: lambda _: Nothing() for route in routes.ROUTES if route.answers is Nothing}
        return silent | {
            routes.TASKS: lambda query: self.tasks[query.split],
            routes.SAMPLE_GROUP: self._sample,
            routes.FINISHED_GROUPS: self._finished,
            routes.DEMONSTRATIONS: lambda _: self.wishes.demonstrations,
            routes.REPLAY: self._replay,
            routes.CHECKPOINTS_IN_USE: lambda _: routes.CheckpointPaths(
                paths=tuple(self.wishes.checkpoints_in_use)
            ),
            routes.CHECKPOINT_ROOM: lambda _: routes.RoomAnswer(shortage=next(self.wishes.shortages, "")),
            routes.WEIGHTS: self._sync_weights,
            routes.EYES: self._eyes,
            routes.CONTROL: self._control,
            routes.FRAME: lambda frame: self.desktops.frame(frame.sha256),
        }

    def _before(self, route: Route[Any, Any], asked: Any) -> None:
        """Remember what was posted, and refuse as a test wishes."""
        with self.lock:
            if self.wishes.loading:
                self.wishes.loading -= 1
                raise Refused(503, "loading the model (1 s)", code=LOADING)
            if self.wishes.failures:
                raise Refused(self.wishes.failures.pop(0), "as the test wishes")
            if route.method == "POST":
                self.seen[route.path].append(to_jsonable_python(asked))

    def _finished(self, query: routes.FinishedQuery) -> routes.FinishedGroups:
        with self.lock:
            return routes.FinishedGroups(cursor=len(self.groups), groups=tuple(self.groups[query.after :]))

    def _control(self, _: Nothing) -> routes.ControlAnswer:
        limit = self.wishes.pause_after_groups
        pause = limit and len(self.groups) >= limit
        return routes.ControlAnswer(command=Control.PAUSE if pause else self.wishes.command)

    def _replay(self, query: routes.ReplayQuery) -> routes.ReplayCandidates:
        entries = [routes.ReplayCandidate.model_validate(entry) for entry in self.wishes.replay_entries]
        mine = [entry for entry in entries if entry.trajectory.task.task_id == query.task_id]
        return routes.ReplayCandidates(entries=tuple(mine))

    def _sample(self, wanted: routes.SampleGroup) -> routes.GroupId:
        with self.lock:
            if not self.wishes.in_background:
                return self._sample_now(len(self.groups) + 1, wanted)
            self.num_asked += 1
            self.asked.put((self.num_asked, wanted))
            return routes.GroupId(group_id=self.num_asked)

    def _sample_in_background(self) -> None:
        """Desktops that go on while the trainer trains; the engine takes new weights between two turns."""
        self.desktops.generate = self._generate
        while True:
            self._sample_now(*self.asked.get())

    def _generate(self, *arguments: Any) -> Any:
        work = self.batched.call(self.desktops.engine.generate, *arguments)
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def _sample_now(self, group_id: int, wanted: routes.SampleGroup) -> routes.GroupId:
        tasks = [task for part in self.tasks.values() for task in part]
        task = next(task for task in tasks if task.task_id == wanted.task_id)
        group = self.desktops.group(
            group_id,
            task,
            wanted.size,
            purpose=wanted.purpose,
            step=wanted.step,
            temperature=wanted.temperature,
            **self._branch(wanted),
        )
        broken = self.wishes.errored_members if wanted.purpose is Purpose.TRAIN else 0
        if broken and not any(g.task.task_id == task.task_id and g.step == group.step for g in self.groups):
            group = _with_errors(group, broken)
        if wanted.source is Source.ORACLE and self.records_demonstrations:
            self.wishes.demonstrations += [_demonstration(member) for member in group.trajectories]
        self.groups.append(group)
        return routes.GroupId(group_id=group_id)

    def _branch(self, wanted: routes.SampleGroup) -> dict[str, Any]:
        """Of a branch: the turns that its parent took before it."""
        members = [member for group in self.groups for member in group.trajectories]
        for parent in members:
            if parent.trajectory_id == wanted.parent_id:
                return {"parent_id": parent.trajectory_id, "before": parent.turns[: wanted.branch_turn]}
        return {}

    def _sync_weights(self, request: WeightsRequest) -> routes.WeightsSynced:
        """One step of a weight sync, by the policy server's own receiver."""
        with self.lock:
            if request.stage in self.wishes.refused_stages:
                raise Refused(409, f"{request.stage} is refused")
            handling = self.weight_sync.handle(request)
            try:
                answer = asyncio.run_coroutine_threadsafe(handling, self.loop).result()
            except ValueError as error:
                raise Refused(409, str(error)) from error
            canary = self.canary() if request.stage in ("load", "commit") else None
            return routes.WeightsSynced(**answer.model_dump(), canary=canary)

    def _eyes(self, request: EyeTestRequest) -> EyeTestAnswer:
        handling = look(self.batched, self.desktops.renderer, SamplingConfig(), request)
        return asyncio.run_coroutine_threadsafe(handling, self.loop).result()

    def canary(self) -> Canary:
        """The engine's logprobs of a fixed prompt with a picture."""
        renderer, task = self.desktops.renderer, self.tasks["train"][0]
        png, sees = picture(task, 0), renderer.sees
        prompt = renderer.render_turn(0, task.instruction, SCREEN if sees else None)
        completion = renderer.completion_ids("click red")
        sequence = EngineSequence(
            sequence_id="canary",
            token_ids=prompt + completion,
            pixels=[renderer.pixels(png)] if sees else [],
            grids=[renderer.image_grid(SCREEN)] if sees else [],
        )
        logprobs = self.desktops.engine.score(sequence, len(prompt))
        return Canary(
            token_ids=(*prompt, *completion),
            loss_mask=(*[0] * len(prompt), *[1] * len(completion)),
            logprobs=(*[0.0] * len(prompt), *logprobs),
            images=(base64.b64encode(png).decode(),) if sees else (),
            policy_version=self.desktops.engine.policy_version,
        )


def _demonstration(trajectory: Trajectory) -> Trajectory:
    """The trajectory as an oracle's: actions instead of completions, score 1."""
    click = Action(kind=ActionKind.CLICK, x=20, y=40)
    turns = tuple(
        turn.model_copy(update={"completion": None, "action": click, "source": Source.ORACLE})
        for turn in trajectory.turns
    )
    return trajectory.model_copy(
        update={"turns": turns, "source": Source.ORACLE, "score": 1.0, "reward": 1.0}
    )


def _with_errors(group: Group, count: int) -> Group:
    """The group with its first `count` members errored."""
    gone = {
        "status": TrajectoryStatus.ERRORED,
        "score": None,
        "reward": None,
        "terms": (),
        "error": "desktop died",
    }
    members = [
        member.model_copy(update=gone) if index < count else member
        for index, member in enumerate(group.trajectories)
    ]
    return group.model_copy(update={"trajectories": tuple(members)})
