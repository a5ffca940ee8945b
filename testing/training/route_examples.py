"""One request for every route of the coordinator and the policy server."""

from __future__ import annotations

from typing import Any

from training.contracts import coordinator, policy_server
from training.contracts.eye_test import EyeTestRequest
from training.contracts.route_types import Nothing, Route
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
    SkipReason,
    StageReport,
    StepAlarms,
)
from training.contracts.types import Completion, Purpose
from training.contracts.weight_requests import Bucket, Load

EXAMPLES: dict[Route[Any, Any], Any] = {
    coordinator.TASKS: coordinator.TaskQuery(split="heldout"),
    coordinator.SAMPLE_GROUP: coordinator.SampleGroup(task_id="menu-1", size=4, purpose=Purpose.TRAIN),
    coordinator.FINISHED_GROUPS: coordinator.FinishedQuery(after=3, wait=1.5),
    coordinator.CANCEL_GROUP: coordinator.GroupId(group_id=3),
    coordinator.DEMONSTRATIONS: Nothing(),
    coordinator.REPLAY: coordinator.ReplayQuery(task_id="menu-1"),
    coordinator.REPLAY_USES: [
        ReplayUse(
            entry_id=1,
            group_id=2,
            step=3,
            replaced_trajectory_id=4,
            policy_age=None,
            as_likelihood=True,
            advantage=0.5,
            importance_ratio=None,
        )
    ],
    coordinator.REPLAY_SKIPS: [
        ReplaySkip(entry_id=1, reason=SkipReason.NO_ACTION, message="turn 1 has no typed action")
    ],
    coordinator.STAGE: StageReport(name=StageName.GRPO, status="started", total=20, unit="steps"),
    coordinator.PROGRESS: ProgressReport(stage=StageName.SFT, done=1, total=2),
    coordinator.METRICS: MetricsReport(step=1, values={"loss/policy": 0.5}, policy_version=1),
    coordinator.MEMBERS: [MemberUpdate(trajectory_id=1, advantage=-0.5)],
    coordinator.EVALUATIONS: EvaluationResult(
        name="before",
        step=0,
        policy_version=0,
        split="heldout",
        temperature=1.0,
        samples_per_task=1,
        num_tasks=2,
        num_requested=3,
        num_errored=1,
        num_samples=2,
        num_success=1,
        num_solved_at_limit=1,
        num_truncated=1,
        num_turns=4,
        num_unparsable_turns=1,
        success=0.5,
        low=0.1,
        high=0.9,
        solved=0.0,
        solved_low=0.0,
        solved_high=0.6,
        per_family={"menu": (1, 2, 1)},
        by_task={"menu-1": (1, 1, 7, 1), "menu-2": (0, 1, 8, 0)},
    ),
    coordinator.CHECKPOINTS: CheckpointReport(step=5, path="/c/5", policy_version=5, success=0.5, bytes=10),
    coordinator.RESUMED: CheckpointReport(step=5, path="/c/5", policy_version=5, bytes=10),
    coordinator.CHECKPOINT_DELETED: CheckpointDeleted(path="/c/5"),
    coordinator.CHECKPOINTS_IN_USE: Nothing(),
    coordinator.CHECKPOINT_ROOM: coordinator.CheckpointSize(folder="/c", num_bytes=1),
    coordinator.ALARMS: StepAlarms(
        step=1,
        alarms=(Alarm(name="zero_variance", step=1, value=1, limit=0.8, message="m", remedy="r"),),
    ),
    coordinator.WEIGHTS: Load(path="/w", policy_version=2),
    coordinator.EYES: EyeTestRequest(is_whole=False),
    coordinator.ENGINE: coordinator.EngineCommand(command="sleep"),
    coordinator.CONTROL: Nothing(),
    coordinator.FRAME: coordinator.FrameName(sha256="ab" * 32),
    policy_server.HEALTH: Nothing(),
    policy_server.TURN: policy_server.TurnRequest(trajectory_id="7", turn_index=2, text="It changed."),
    policy_server.PREFIX: policy_server.PrefixRequest(
        trajectory_id="7", turns=(policy_server.PrefixTurn(completion=Completion(text="wait")),)
    ),
    policy_server.WAITED: policy_server.TrajectoryName(trajectory_id="7"),
    policy_server.FORGET: policy_server.TrajectoryName(trajectory_id="7"),
    policy_server.WEIGHTS: Bucket(channel="nccl", names=["w"], shapes=[[2, 3]], dtype="bfloat16"),
    policy_server.CANARY: Nothing(),
    policy_server.EYES: EyeTestRequest(is_whole=True),
    policy_server.ENGINE: Nothing(),
    policy_server.SLEEP: Nothing(),
    policy_server.END_HOSTS: policy_server.EndedHosts(hosts={"near": 2000}),
    policy_server.WAKE: Nothing(),
}
