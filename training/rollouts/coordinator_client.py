"""Client of the coordinator: the trainer's only door to desktops, database and policy server.

Only rank 0 owns one. A lost connection or a 5xx answer is tried again with growing pauses
(the gpu worker may be restarting) until `patience_s` is spent; a 4xx answer is our mistake
and raises at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
from pydantic import BaseModel, TypeAdapter

from training.contracts.types import (
    Alarm,
    Control,
    EvaluationResult,
    Group,
    MemberUpdate,
    Purpose,
    ReplayUse,
    Source,
    Task,
    Trajectory,
    Wire,
)
from training.contracts.weight_requests import Commit, Load, WeightsRequest


class CoordinatorError(Exception):
    """Root of what can go wrong between the trainer and its coordinator."""


class CoordinatorUnreachable(CoordinatorError):
    """Raised when the coordinator did not answer within the patience."""


class CoordinatorRefused(CoordinatorError):
    """Raised when the coordinator answered 4xx; `status` is its code."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class ReplayCandidate(Wire):
    """A curated success that the coordinator offers for a failed group."""

    entry_id: int
    label: str
    """accepted | gold"""
    policy_version: int | None = None
    """Version that sampled it; None for human and oracle entries."""
    recorded_policy_age: int | None = None
    """Policy versions between recording and now; None when unknown or nobody sampled it."""
    trajectory: Trajectory
    """Re-scored with this experiment's reward preset."""


class Canary(Wire):
    """The engine's own logprobs of a fixed prompt with an image."""

    token_ids: tuple[int, ...]
    """The whole sequence, image pads expanded. [num_tokens]"""
    loss_mask: tuple[int, ...]
    """1 on its completion tokens. [num_tokens]"""
    logprobs: tuple[float, ...]
    """Nats; 0.0 where the mask is 0. [num_tokens]"""
    images: tuple[str, ...] = ()
    """PNGs in base64, in order."""
    temperature: float = 1.0
    policy_version: int


class FinishedGroups(Wire):
    """One answer of the long poll."""

    cursor: int
    groups: tuple[Group, ...]


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


class Coordinator:
    """Typed calls over one keep-alive connection."""

    def __init__(self, address: CoordinatorAddress, *, patience_s: float = 120.0) -> None:
        self.address = address
        self.patience_s = patience_s
        self.engine_needs_weights = False
        """True when a part of the engine was started again and can only draw after a weight sync."""
        self.engine_idle_s = 0.0
        """Seconds in which the engine had no request, as the last weight sync's answer counted them."""
        self._http = httpx.Client(
            base_url=address.url,
            headers={"Authorization": f"Bearer {address.token}"},
            timeout=httpx.Timeout(60.0, read=600.0),
            trust_env=False,  # loopback: a proxy from the environment would swallow it
        )

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def tasks(self, split: str) -> list[Task]:
        """Supported tasks of the experiment, in stable order."""
        return self._list(Task, self._get("/tasks", split=split))

    def request_group(
        self,
        task_id: str,
        size: int,
        *,
        purpose: Purpose,
        step: int,
        temperature: float,
        policy_version: int,
        source: Source = Source.POLICY,
    ) -> int:
        """Ask for `size` trajectories of a task; returns the group's id at once."""
        body = {
            "task_id": task_id,
            "size": size,
            "purpose": purpose.value,
            "step": step,
            "source": source.value,
            "temperature": temperature,
            "policy_version": policy_version,
        }
        return int(self._post("/groups", body)["group_id"])

    def cancel_group(self, group_id: int) -> None:
        """Give up on a group."""
        self._post(f"/groups/{group_id}/cancel", {})

    def finished_groups(self, after: int, wait_s: float) -> FinishedGroups:
        """Groups that became final after cursor `after`; waits up to `wait_s` for the first."""
        return FinishedGroups.model_validate(self._get("/groups/finished", after=after, wait=wait_s))

    def demonstrations(self) -> list[Trajectory]:
        """Finished oracle trajectories with score 1 on train tasks."""
        return self._list(Trajectory, self._get("/demonstrations"))

    def replay_candidates(self, task_id: str) -> list[ReplayCandidate]:
        """Curated successes of a task, best first."""
        entries = self._get("/replay", task_id=task_id)["entries"]
        return self._list(ReplayCandidate, entries)

    def report_replay_uses(self, uses: Sequence[ReplayUse]) -> None:
        """Say which entries were injected where."""
        self._post("/replay/uses", _dump(uses))

    def report_stage(self, name: str, status: str, total: int, unit: str) -> None:
        """A stage started or finished."""
        self._post("/stage", {"name": name, "status": status, "total": total, "unit": unit})

    def report_progress(self, stage: str, done: int, total: int) -> None:
        """How far a stage is."""
        self._post("/progress", {"stage": stage, "done": done, "total": total})

    def report_metrics(self, step: int, values: dict[str, float], policy_version: int) -> None:
        """Metric points of a step."""
        self._post("/metrics", {"step": step, "values": values, "policy_version": policy_version})

    def report_members(self, updates: Sequence[MemberUpdate]) -> None:
        """Advantages of the trajectories that a step used."""
        self._post("/members", _dump(updates))

    def report_evaluation(self, result: EvaluationResult) -> None:
        """A held-out evaluation."""
        self._post("/evaluations", result.model_dump(mode="json"))

    def report_checkpoint(self, values: dict[str, Any]) -> None:
        """A checkpoint is complete: step, path, policy_version, is_best, success, bytes."""
        self._post("/checkpoints", values)

    def report_checkpoint_deleted(self, path: str) -> None:
        """A checkpoint is gone."""
        self._post("/checkpoints/deleted", {"path": path})

    def checkpoints_in_use(self) -> frozenset[str]:
        """Folders of own checkpoints that people wait for (evaluations, exports); not to be deleted now."""
        return frozenset(self._get("/checkpoints/in-use")["paths"])

    def report_alarms(self, alarms: Sequence[Alarm]) -> None:
        """Guards that fired."""
        self._post("/alarms", _dump(alarms))

    def sync_weights(self, request: WeightsRequest) -> Canary | None:
        """One step of a weight sync; the engine's canary when it has new weights.

        Raises CoordinatorError when it was not done. Only a `load` is tried again by itself.
        """
        body = request.model_dump(mode="json")
        answer = self._call("POST", "/weights", json=body, repeats=request.stage == "load").json()
        self.engine_idle_s = float(answer.get("idle_s", 0.0))
        if isinstance(request, Load | Commit) and answer["policy_version"] != request.policy_version:
            raise CoordinatorError(
                f"synced version {request.policy_version}, "
                f"but the policy server has {answer['policy_version']}"
            )
        canary = answer.get("canary")
        return None if canary is None else Canary.model_validate(canary)

    def engine(self, command: Literal["sleep", "wake"]) -> None:
        """A colocated engine gives the GPUs' memory, or takes it back; returns when that is done."""
        self._post("/engine", {"command": command})

    def control(self) -> Control:
        """What the supervisor wants. Afterwards `engine_needs_weights` says what the engine wants."""
        answer = self._get("/control")
        self.engine_needs_weights = bool(answer.get("needs_weights", False))
        return Control(answer["command"])

    def frame(self, sha256: str) -> bytes:
        """The lossless PNG of a frame."""
        return self._call("GET", f"/frames/{sha256}").content

    def _get(self, path: str, **query: Any) -> Any:
        return self._call("GET", path, params=query).json()

    def _post(self, path: str, body: Any) -> Any:
        return self._call("POST", path, json=body).json()

    def _call(self, method: str, path: str, *, repeats: bool = True, **options: Any) -> httpx.Response:
        patience_s = self.patience_s if repeats else 0.0
        deadline = time.monotonic() + patience_s
        pause_s = 0.1
        while True:
            try:
                response = self._http.request(method, path, **options)
                if response.status_code < 500:
                    break
                reason = f"{response.status_code} {response.text[:300]}"
            except httpx.TransportError as error:
                reason = f"{type(error).__name__}: {error}"
            if time.monotonic() + pause_s > deadline:
                raise CoordinatorUnreachable(
                    f"{method} {path}: {self.address.url} silent for {patience_s:.0f} s ({reason})"
                )
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 5.0)
        if response.status_code >= 400:
            raise CoordinatorRefused(
                response.status_code, f"{method} {path}: {response.status_code} {response.text[:300]}"
            )
        return response

    @staticmethod
    def _list(kind: type[Any], values: Any) -> list[Any]:
        return TypeAdapter(list[kind]).validate_python(values)


def _dump(values: Sequence[BaseModel]) -> list[dict[str, Any]]:
    return [value.model_dump(mode="json") for value in values]
