"""What `rl_step` says of an arm: rates, and how much of the time each side was at work.

    trainer busy   seconds of forward, backward and update, over all seconds of the measured steps
    engine busy    seconds in which the policy server had a turn to generate (all but its own count of idle
                   ones), without those in which turns waited for a weight sync

Beside them, by NVML: the share of moments in which a kernel ran, averaged over the GPUs of each side.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from benchmarks.gpu.flops import Work
from workers.gpu.nvml import GpuUse, open_gpus

if TYPE_CHECKING:
    from benchmarks.gpu.rl_step_arm import Arm
    from benchmarks.gpu.rl_step_world import PlayedWorld, Span

LOOK_S = 0.25
KEPT = (
    *("time/step_s", "time/train_s", "time/rollout_s", "sync/seconds", "sync/drift", "sync/fell_back"),
    *("async/engine_idle_s", "async/staleness_mean", "async/staleness_max", "async/dropped"),
    *("loss/total", "policy/logprob_gap", "optimiser/grad_norm", "optimiser/skipped_steps"),
)


@dataclass
class GpuWatch:
    """Looks at all GPUs again and again; use as a context manager."""

    looks: list[tuple[float, list[GpuUse]]] = field(default_factory=list)
    """(time.monotonic, every GPU)"""

    def __enter__(self) -> Self:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5)

    def _watch(self) -> None:
        gpus = open_gpus()
        while gpus is not None and not self._stop.wait(LOOK_S):
            self.looks.append((time.monotonic(), gpus.look()[0]))

    def means(self, begin: float, end: float) -> list[dict[str, float]]:
        """Per GPU, between two moments: share of moments with a kernel, and the most memory in use."""
        seen = [gpus for moment, gpus in self.looks if begin <= moment <= end]
        return [
            {
                "busy": round(statistics.mean(use.utilisation for use in uses), 3),
                "memory_gb": round(max(use.memory_bytes for use in uses) / 1e9, 1),
            }
            for uses in zip(*seen, strict=True)
        ]


def figures_of(arm: Arm, world: PlayedWorld, watch: GpuWatch, *, began: float) -> dict[str, Any]:
    """All figures of a run that is over."""
    metrics, last = world.metrics(), world.last_step
    steps = range(arm.warm_up + 1, last + 1)
    begin, end = world.times[arm.warm_up], world.times[last]
    sums = {name: sum(metrics[step].get(name, 0.0) for step in steps) for name in KEPT}
    members = [member for step in steps for member in world.played.get(step, [])]
    wall = end - begin
    idle = sums["async/engine_idle_s"]
    held = overlap(world.sync_spans, world.turn_spans, begin, end)
    tokens = [_num_tokens(member) for member in members if member.turns]
    seen = watch.means(begin, end)
    return {
        "arm": arm.name,
        "num_gpus": arm.num_gpus,
        "steps": len(steps),
        "wall_s": wall,
        "step_s": wall / len(steps),
        "train_s": sums["time/train_s"] / len(steps),
        "wait_s": sums["time/rollout_s"] / len(steps),
        "sync_s": statistics.median(metrics[step].get("sync/seconds", 0.0) for step in steps),
        "sync_max_s": max(metrics[step].get("sync/seconds", 0.0) for step in steps),
        "first_sync_s": metrics[0]["sync/seconds"] - world.waited_s,
        "trajectories": len(members),
        "trajectories_per_gpu_hour": len(members) / wall * 3600 / arm.num_gpus,
        "turns_per_s": sum(len(member.turns) for member in members) / wall,
        "tokens_per_trajectory": statistics.mean(tokens) if tokens else 0.0,
        "tokens_per_s": sum(tokens) / wall,
        "trainer_busy": sums["time/train_s"] / wall,
        "engine_busy": max(0.0, 1 - (idle + held) / wall),
        "engine_idle_s": idle / len(steps),
        "engine_held_s": held / len(steps),
        "logprob_gap": sums["policy/logprob_gap"] / len(steps),
        "fell_back": sum(point.get("sync/fell_back", 0.0) for point in metrics.values()),
        "errors": list(world.seen["errors"][:3]),
        "trainer_gpus": seen[: arm.trainers],
        "engine_gpus": seen[: arm.engines] if arm.placement == "colocated" else seen[arm.trainers :],
        "usage": world.policy.ask("GET", "/engine").get("usage", {}),
        "until_first_step_s": world.times[1] - began,
        "by_step": {
            step: {name: round(point[name], 5) for name in KEPT if name in point}
            for step, point in sorted(metrics.items())
        },
    }


def work_of(world: PlayedWorld, arm: Arm, patches: int) -> Work:
    """What the measured steps computed on; `patches` of a screen, 0 = none is seen."""
    steps = range(arm.warm_up + 1, world.last_step + 1)
    members = [member for step in steps for member in world.played.get(step, []) if member.turns]
    turns = [turn for member in members for turn in member.turns if turn.completion]
    return Work(
        lengths=[_num_tokens(member) for member in members],
        patches=[patches] * len(turns) if patches else [],
        scored=sum(len(turn.completion.token_ids) for turn in turns if turn.completion),
    )


def overlap(some: Sequence[Span], others: Sequence[Span], begin: float, end: float) -> float:
    """Seconds between two moments in which at least one of `some` and one of `others` were going on."""
    changes = [
        (moment, kind, sign)
        for kind, spans in enumerate((some, others))
        for span in spans
        for moment, sign in ((span[0], 1), (span[1], -1))
    ]
    counts, since, total = [0, 0], begin, 0.0
    for moment, kind, sign in sorted([*changes, (end, 0, 0)]):
        moment = min(max(moment, begin), end)
        if all(counts):
            total += moment - since
        counts[kind] += sign
        since = moment
    return total


def _num_tokens(member: Any) -> int:
    """Of the whole sequence that is trained on, image tokens included."""
    last = member.turns[-1].completion
    return last.num_prompt_tokens + len(last.token_ids)
