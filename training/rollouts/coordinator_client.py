"""Client of the coordinator: the trainer's only door to desktops, database and policy server.

Only rank 0 owns one. A lost connection or a 5xx answer is tried again with growing pauses
(the gpu worker may be restarting) until `patience_s` is spent; a 4xx answer is our mistake
and raises at once. While the policy server is loading, whatever was asked of it is repeated
for as long as the engine may take to start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_before_delay, wait_exponential

from training.contracts import coordinator as routes
from training.contracts.eye_test import EyeTestAnswer, EyeTestRequest
from training.contracts.route_types import (
    Answered,
    Asked,
    MalformedMessage,
    Nothing,
    Route,
    WireRequest,
    loading_message,
)
from training.contracts.stage_names import StageName
from training.contracts.trainer_reports import (
    Alarm,
    CheckpointDeleted,
    CheckpointReport,
    EvaluationResult,
    MemberUpdate,
    MetricsReport,
    ProgressReport,
    ReplaySkip,
    ReplayUse,
    StageReport,
    StepAlarms,
)
from training.contracts.types import Control, Task, Trajectory
from training.contracts.weight_requests import Canary, Commit, Load, WeightsRequest

JSON = {"Content-Type": "application/json"}
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""Between attempts; they double."""


class CoordinatorError(Exception):
    """Root of what can go wrong between the trainer and its coordinator."""


class CoordinatorUnreachable(CoordinatorError):
    """Raised when the coordinator did not answer within the patience."""


class _ServerFailed(Exception):
    """Raised for a 5xx answer: the gpu worker may be restarting."""


class _PolicyServerLoading(Exception):
    """Raised for a 503 answer that says so: nothing was begun."""


class CoordinatorRefused(CoordinatorError):
    """Raised when the coordinator answered 4xx; `status` is its code."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorAddress:
    """Where the coordinator listens and how to sign in."""

    url: str
    token: str
    frames_directory: Path | None = None
    """Folder of the lossless frames (ab/SHA256.png); None = ask the coordinator for each."""

    @classmethod
    def from_environment(cls) -> CoordinatorAddress:
        """Raises ValueError that names the missing variable."""
        values = {}
        for name in ("DESKHAND_COORDINATOR_URL", "DESKHAND_COORDINATOR_TOKEN"):
            values[name] = os.environ.get(name, "")
            if not values[name]:
                raise ValueError(
                    f"{name} is not set; the gpu worker sets it, or set it to your own coordinator's"
                )
        frames = os.environ.get("DESKHAND_FRAMES_DIR", "")
        return cls(
            url=values["DESKHAND_COORDINATOR_URL"],
            token=values["DESKHAND_COORDINATOR_TOKEN"],
            frames_directory=Path(frames) if frames else None,
        )


class CoordinatorClient:
    """Typed calls over one keep-alive connection; the routes are `training.contracts.coordinator`."""

    def __init__(
        self, address: CoordinatorAddress, *, engine_start_s: float = 0.0, patience_s: float = 120.0
    ) -> None:
        """`engine_start_s`: how long the policy server may be loading (`EngineConfig.start_limit_s`)."""
        self.address = address
        self.engine_start_s = engine_start_s
        self.patience_s = patience_s
        self.engine_needs_weights = False
        """True when a part of the engine was started again and generates only after a weight sync."""
        self.engine_idle_s = 0.0
        """Seconds in which the engine had no request, as the last weight sync's answer counted them."""
        self._http = httpx.Client(
            base_url=address.url,
            headers={"Authorization": f"Bearer {address.token}"},
            timeout=httpx.Timeout(60.0, read=600.0),
            trust_env=False,  # loopback: a proxy from the environment would swallow it
        )

    def close(self) -> None:
        self._http.close()

    def tasks(self, split: Literal["train", "heldout"], *, for_sft: bool = False) -> list[Task]:
        """Supported tasks of the experiment, in stable order."""
        return self._ask(routes.TASKS, routes.TaskQuery(split=split, for_sft=for_sft or None))

    def request_group(self, wanted: routes.SampleGroup) -> int:
        """Ask for a group; returns its id at once."""
        return self._ask(routes.SAMPLE_GROUP, wanted).group_id

    def cancel_group(self, group_id: int) -> None:
        """Give up on a group."""
        self._ask(routes.CANCEL_GROUP, routes.GroupId(group_id=group_id))

    def finished_groups(self, after: int, wait_s: float) -> routes.FinishedGroups:
        """Groups that became final after cursor `after`; waits up to `wait_s` for the first."""
        return self._ask(routes.FINISHED_GROUPS, routes.FinishedQuery(after=after, wait=wait_s))

    def demonstrations(self) -> list[Trajectory]:
        """Finished oracle trajectories with score 1 on train tasks."""
        return self._ask(routes.DEMONSTRATIONS, Nothing())

    def replay_candidates(self, task_id: str) -> Sequence[routes.ReplayCandidate]:
        """Curated successes of a task, best first."""
        return self._ask(routes.REPLAY, routes.ReplayQuery(task_id=task_id)).entries

    def report_replay_uses(self, uses: list[ReplayUse]) -> None:
        """Say which entries were injected where."""
        self._ask(routes.REPLAY_USES, uses)

    def report_replay_skips(self, skips: list[ReplaySkip]) -> None:
        """Say which entries could not be used."""
        self._ask(routes.REPLAY_SKIPS, skips)

    def report_stage(
        self, name: StageName, status: Literal["started", "finished"], total: int, unit: str
    ) -> None:
        self._ask(routes.STAGE, StageReport(name=name, status=status, total=total, unit=unit))

    def report_progress(self, stage: StageName, done: int, total: int) -> None:
        self._ask(routes.PROGRESS, ProgressReport(stage=stage, done=done, total=total))

    def report_metrics(self, step: int, values: dict[str, float], policy_version: int) -> None:
        self._ask(routes.METRICS, MetricsReport(step=step, values=values, policy_version=policy_version))

    def report_members(self, updates: list[MemberUpdate]) -> None:
        """Advantages of the trajectories that a step used."""
        self._ask(routes.MEMBERS, updates)

    def report_evaluation(self, result: EvaluationResult) -> None:
        """A held-out evaluation."""
        self._ask(routes.EVALUATIONS, result)

    def report_checkpoint(self, report: CheckpointReport) -> None:
        self._ask(routes.CHECKPOINTS, report)

    def report_resumed(self, report: CheckpointReport) -> None:
        """This attempt goes on from that checkpoint."""
        self._ask(routes.RESUMED, report)

    def report_checkpoint_deleted(self, path: str) -> None:
        self._ask(routes.CHECKPOINT_DELETED, CheckpointDeleted(path=path))

    def checkpoints_in_use(self) -> frozenset[str]:
        """Folders of own checkpoints that people wait for (evaluations, exports); not to be deleted now."""
        return frozenset(self._ask(routes.CHECKPOINTS_IN_USE, Nothing()).paths)

    def shortage_of_checkpoint(self, folder: str, num_bytes: int) -> str:
        """What is missing on the disk for a checkpoint of that size; "" when it fits."""
        return self._ask(
            routes.CHECKPOINT_ROOM, routes.CheckpointSize(folder=folder, num_bytes=num_bytes)
        ).shortage

    def report_alarms(self, step: int, alarms: Sequence[Alarm]) -> None:
        """The guards that fired at a step."""
        self._ask(routes.ALARMS, StepAlarms(step=step, alarms=tuple(alarms)))

    def sync_weights(self, request: WeightsRequest) -> Canary | None:
        """One step of a weight sync; the engine's canary when it has new weights.

        Raises CoordinatorError when it was not done. Only a `load` is tried again by itself.
        """
        answer = self._ask(routes.WEIGHTS, request, repeats=request.stage == "load")
        self.engine_idle_s = answer.idle_s
        if isinstance(request, Load | Commit) and answer.policy_version != request.policy_version:
            raise CoordinatorError(
                f"synced version {request.policy_version}, but the policy server has {answer.policy_version}"
            )
        return answer.canary

    def eye_test(self, request: EyeTestRequest) -> EyeTestAnswer:
        """What the engine reads in the eye test."""
        return self._ask(routes.EYES, request)

    def engine(self, command: Literal["sleep", "wake"]) -> None:
        """A colocated engine gives the GPUs' memory, or takes it back; returns when that is done."""
        self._ask(routes.ENGINE, routes.EngineCommand(command=command))

    def control(self) -> Control:
        """What the supervisor wants. Afterwards `engine_needs_weights` says what the engine wants."""
        answer = self._ask(routes.CONTROL, Nothing())
        self.engine_needs_weights = answer.needs_weights
        return answer.command

    def frame(self, sha256: str) -> bytes:
        """The lossless PNG of a frame."""
        return self._ask(routes.FRAME, routes.FrameName(sha256=sha256))

    def _ask(self, route: Route[Asked, Answered], request: Asked, *, repeats: bool = True) -> Answered:
        """The answer of a route. Raises CoordinatorError."""
        patience_s = self.patience_s if repeats else 0.0
        send = _repeated(self._send, (httpx.TransportError, _ServerFailed), patience_s)
        send_when_loaded = _repeated(send, _PolicyServerLoading, self.engine_start_s)
        try:
            response = send_when_loaded(route.method, route.write_request(request))
        except _PolicyServerLoading as error:
            raise CoordinatorUnreachable(
                f"{route}: the policy server was not ready within {self.engine_start_s:.0f} s ({error})"
            ) from error
        except (httpx.TransportError, _ServerFailed) as error:
            reason = str(error) or type(error).__name__
            raise CoordinatorUnreachable(
                f"{route}: {self.address.url} silent for {patience_s:.0f} s ({reason})"
            ) from error
        if response.status_code >= 400:
            raise CoordinatorRefused(
                response.status_code, f"{route}: {response.status_code} {response.text[:300]}"
            )
        try:
            return route.read_answer(response.content)
        except MalformedMessage as error:
            raise CoordinatorError(str(error)) from error

    def _send(self, method: str, wire: WireRequest) -> httpx.Response:
        response = self._http.request(method, wire.path, params=wire.query, content=wire.body, headers=JSON)
        if (message := loading_message(response.status_code, response.content)) is not None:
            raise _PolicyServerLoading(message)
        if response.is_server_error:
            raise _ServerFailed(f"{response.status_code} {response.text[:300]}")
        return response


Send = Callable[[str, WireRequest], httpx.Response]


def _repeated(send: Send, errors: type[Exception] | tuple[type[Exception], ...], patience_s: float) -> Send:
    """`send`, tried again after each of `errors` until `patience_s` is spent."""
    return Retrying(
        retry=retry_if_exception_type(errors),
        stop=stop_before_delay(patience_s),
        wait=wait_exponential(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S),
        reraise=True,
    ).wraps(send)
