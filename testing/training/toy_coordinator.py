"""A real HTTP coordinator over toy desktops: the same routes as the gpu worker's, in a thread."""

from __future__ import annotations

import asyncio
import base64
import queue
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from testing.json_server import JsonServer, Refused, Request
from testing.training.toy_desktops import SCREEN, ToyDesktops, picture, toy_tasks
from training.contracts.types import (
    Action,
    ActionKind,
    Group,
    Purpose,
    Source,
    Trajectory,
    TrajectoryStatus,
)
from training.contracts.weight_requests import REQUEST
from training.sampler.engines.continuous_batching import BatchingEngine
from training.sampler.engines.engine import EngineSequence
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
    command: str = "run"
    failures: list[int] = field(default_factory=list)
    """Status codes to answer next, before any work."""
    in_background: bool = False
    """Groups are sampled by a thread of their own, in the order of asking."""
    refused_stages: tuple[str, ...] = ()
    """Steps of a weight sync that are answered with an error."""
    replay_entries: list[dict[str, Any]] = field(default_factory=list)
    demonstrations: list[Trajectory] = field(default_factory=list)
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
        self.asked: queue.Queue[tuple[int, dict[str, Any]]] = queue.Queue()
        self.num_asked = 0
        threading.Thread(target=self._sample_in_background, daemon=True).start()
        self._server = JsonServer(self._answer)
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

    def _answer(self, request: Request) -> Any:
        """One request at a time: refused without the token, or as a test wishes, else the route's answer."""
        with self.lock:
            if request.authorization != f"Bearer {TOKEN}":
                raise Refused(401, {"error": {"code": "unauthorized", "message": "wrong token"}})
            if self.wishes.failures:
                raise Refused(self.wishes.failures.pop(0), {})
            try:
                return self.answer(request.method, request.path, request.query, request.body)
            except ValueError as error:
                raise Refused(409, {"error": {"code": "refused", "message": str(error)}}) from error

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        """The JSON answer of a route."""
        if method == "POST":
            self.seen[path].append(body)
        if path == "/tasks":
            return [task.model_dump(mode="json") for task in self.tasks[query["split"]]]
        if path == "/groups":
            return {"group_id": self._sample(body)}
        if path == "/groups/finished":
            after = int(query["after"])
            return {
                "cursor": len(self.groups),
                "groups": [group.model_dump(mode="json") for group in self.groups[after:]],
            }
        if path == "/control":
            limit = self.wishes.pause_after_groups
            pause = limit and len(self.groups) >= limit
            return {"command": "pause" if pause else self.wishes.command}
        if path == "/weights":
            return self._load(body)
        if path == "/replay":
            entries = self.wishes.replay_entries
            mine = [e for e in entries if e["trajectory"]["task"]["task_id"] == query["task_id"]]
            return {"entries": mine}
        if path == "/demonstrations":
            return [one.model_dump(mode="json") for one in self.wishes.demonstrations]
        if path == "/checkpoints/in-use":
            return {"paths": self.wishes.checkpoints_in_use}
        return {}

    def _sample(self, body: dict[str, Any]) -> int:
        if self.wishes.in_background:
            self.num_asked += 1
            self.asked.put((self.num_asked, body))
            return self.num_asked
        return self._sample_now(len(self.groups) + 1, body)

    def _sample_in_background(self) -> None:
        """Desktops that go on while the trainer trains; the engine takes new weights between two turns."""
        self.desktops.generate = self._generate
        while True:
            group_id, body = self.asked.get()
            self._sample_now(group_id, body)

    def _generate(self, *arguments: Any) -> Any:
        work = self.batched.call(self.desktops.engine.generate, *arguments)
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def _sample_now(self, group_id: int, body: dict[str, Any]) -> int:
        tasks = [task for part in self.tasks.values() for task in part]
        task = next(task for task in tasks if task.task_id == body["task_id"])
        group = self.desktops.group(
            group_id,
            task,
            body["size"],
            purpose=Purpose(body["purpose"]),
            step=body["step"],
            temperature=body["temperature"],
        )
        broken = self.wishes.errored_members if body["purpose"] == "train" else 0
        if broken and not any(g.task.task_id == task.task_id and g.step == group.step for g in self.groups):
            group = _with_errors(group, broken)
        if body["source"] == "oracle" and self.records_demonstrations:
            self.wishes.demonstrations += [_demonstration(member) for member in group.trajectories]
        self.groups.append(group)
        return group_id

    def _load(self, body: dict[str, Any]) -> dict[str, Any]:
        """One step of a weight sync, by the policy server's own receiver."""
        stage = body["stage"]
        if stage in self.wishes.refused_stages:
            raise ValueError(f"{stage} is refused")
        handling = self.weight_sync.handle(REQUEST.validate_python(body))
        answer = asyncio.run_coroutine_threadsafe(handling, self.loop).result().model_dump()
        if stage in ("load", "commit"):
            answer["canary"] = self.canary()
        return answer

    def canary(self) -> dict[str, Any]:
        """The engine's logprobs of a fixed prompt with a picture."""
        renderer, task = self.desktops.renderer, self.tasks["train"][0]
        png = picture(task, 0)
        prompt = renderer.render_turn(0, task.instruction, SCREEN)
        completion = renderer.completion_ids("click red")
        sequence = EngineSequence(
            sequence_id="canary",
            token_ids=prompt + completion,
            pixels=[renderer.pixels(png)],
            grids=[renderer.image_grid(SCREEN)],
        )
        logprobs = self.desktops.engine.score(sequence, len(prompt))
        return {
            "token_ids": prompt + completion,
            "loss_mask": [0] * len(prompt) + [1] * len(completion),
            "logprobs": [0.0] * len(prompt) + logprobs,
            "images": [base64.b64encode(png).decode()],
            "temperature": 1.0,
            "policy_version": self.desktops.engine.policy_version,
        }


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
