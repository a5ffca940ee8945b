"""Branching: what a snapshot per turn costs, and how soon a branch shows its first screen.

The real path: queue -> Redis -> env worker -> desk host -> QEMU, with a task's oracle. A parent keeps a
snapshot before every turn; then it is branched from its last turn, several times. The peer is the same
state reached without snapshots: a fresh trajectory of the same task that takes the turns before again, on
a desktop cloned from the task's template, in the same run and with the same warm pool.

Bars: a branch shows its first screen sooner than the replay, by the median; every branch shows the very
picture that the parent had there, and is solved; after the trajectories were deleted nothing is kept.

    python -m benchmarks.desktops.branch [--rounds 7] [--turns 8] [--images DIR]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.desktops.vm_clone import default_images
from benchmarks.desktops.vm_soak import running_experiment
from benchmarks.report import finish, percentile, print_table
from testing.private_installation import Instance
from testing.watch_installation import wait_for
from training.contracts.config import ExperimentConfig
from training.contracts.types import Purpose, Source, Task

LIMIT_S = 900
TIDY_LIMIT_S = 240
POLL_S = 0.01


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--turns", type=int, default=8, help="turns before the one that is branched from")
    arguments.add_argument("--images", type=Path, default=default_images())
    options = arguments.parse_args()
    environment = {"DESKHAND_IMAGES_DIR": str(options.images)}
    with Instance(without=["gpu", "web"], slots=1, env_workers=1, env=environment) as deskhand:
        os.environ.update(deskhand.environment)
        figures = measure(options.rounds, options.turns, deskhand.folder / "deskhost" / "snapshots")
    return report(figures)


def measure(rounds: int, turns: int, folder: Path) -> dict[str, Any]:
    """Rounds of branching and of replaying, alternately, so that the machine's moods hit both."""
    import django

    django.setup()
    stage = Stage(turns)
    plain = stage.run(snapshots=False)
    parent = stage.run(snapshots=True)
    branch_s, replay_s, same, solved = [], [], [], []
    for _ in range(rounds):
        member, seconds = stage.branch(parent)
        branch_s.append(seconds)
        same.append(stage.frame(member) == stage.frame(parent))
        solved.append(member.score == 1.0)
        replay_s.append(stage.replay())
    kept = list(parent.snapshots.values("size_mb", "pause_s", "took_s"))
    return {
        "rounds": rounds,
        "turns_before": turns,
        "first_branch_s": branch_s[0],
        "branch_s": spread(branch_s),
        "replay_s": spread(replay_s),
        "times_sooner": percentile(replay_s, 0.5) / percentile(branch_s, 0.5),
        "same_screen": sum(same),
        "solved": sum(solved),
        "snapshots": len(kept),
        "pause_s": spread([row["pause_s"] for row in kept]),
        "took_s": spread([row["took_s"] for row in kept]),
        "size_mb": spread([row["size_mb"] for row in kept]),
        "turn_without_s": stage.turn_s(plain),
        "turn_with_s": stage.turn_s(parent),
        "load": os.getloadavg()[0],
        "left": stage.clear_up(folder),
    }


class Stage:
    """An experiment on QEMU desktops with one task of many turns."""

    def __init__(self, turns: int) -> None:
        from webapp.experiments.models import TaskRecord, TaskSet

        self.turns = turns
        self.experiment = running_experiment()
        task = long_task(turns)
        self.record = TaskRecord.made_from(task, task_set=TaskSet.objects.create(name="branch"))
        self.record.save()

    def run(self, *, snapshots: bool) -> Any:
        """A solved trajectory, with or without snapshots."""
        trajectory = self._queue(snapshots=snapshots)
        self._wait(lambda: self._again(trajectory).is_final, "a trajectory")
        trajectory = self._again(trajectory)
        if trajectory.score != 1.0:
            raise RuntimeError(f"the oracle did not solve the task: {trajectory.status} {trajectory.error}")
        return trajectory

    def branch(self, parent: Any) -> tuple[Any, float]:
        """One continuation, and the seconds from the wish to its first screen."""
        from webapp.trajectories.services import branches

        self._rest()
        request = branches.BranchRequest(turn=self.turns, size=1, source=Source.ORACLE)
        started = time.monotonic()
        member = branches.branch_trajectory(trajectory=parent, request=request).trajectories.get()
        self._wait(lambda: self._shows(member), "a branch's first screen")
        seconds = time.monotonic() - started
        self._wait(lambda: self._again(member).is_final, "a branch")
        return self._again(member), seconds

    def replay(self) -> float:
        """Seconds until a fresh trajectory has taken the turns before and shows the same screen."""
        self._rest()
        started = time.monotonic()
        trajectory = self._queue(snapshots=False)
        self._wait(lambda: self._shows(trajectory), "a replay")
        seconds = time.monotonic() - started
        self._wait(lambda: self._again(trajectory).is_final, "a replay's end")
        return seconds

    def frame(self, trajectory: Any) -> str:
        return trajectory.turns.get(index=self.turns).frame

    def turn_s(self, trajectory: Any) -> float:
        """Median seconds from one screenshot to the next."""
        moments = list(trajectory.turns.order_by("index").values_list("observed_at", flat=True))
        steps = [
            (after - before).total_seconds() for before, after in zip(moments, moments[1:], strict=False)
        ]
        return percentile(steps, 0.5)

    def clear_up(self, folder: Path) -> dict[str, int]:
        """Delete every trajectory; what is still kept once the host had time to drop it."""
        from webapp.trajectories.models import Snapshot, Trajectory

        Trajectory.objects.all().delete()
        deadline = time.monotonic() + TIDY_LIMIT_S
        while (left := list(folder.glob("*/s*"))) and time.monotonic() < deadline:
            time.sleep(1)
        return {"folders": len(left), "rows": Snapshot.objects.count()}

    def _queue(self, *, snapshots: bool) -> Any:
        from webapp.trajectories.services.groups import GroupSpec, create_group

        desktops = {
            "provider": "qemu",
            "num_desktops": 1,
            "max_turns": 200,
            "trajectory_timeout_s": LIMIT_S,
            "retries": 0,
            "qemu": {"snapshot_members": int(snapshots)},
        }
        config = ExperimentConfig.model_validate({"desktops": desktops})
        type(self.experiment).objects.filter(pk=self.experiment.pk).update(
            config=config.model_dump(mode="json")
        )
        self.experiment.refresh_from_db()
        request = GroupSpec(task=self.record, size=1, purpose=Purpose.VERIFICATION, source=Source.ORACLE)
        group = create_group(request=request, team_id=self.experiment.team_id, experiment=self.experiment)
        return group.trajectories.get()

    def _shows(self, trajectory: Any) -> bool:
        row = self._again(trajectory)
        if row.is_final and row.score is None:
            raise RuntimeError(f"{row}: {row.status} {row.error}")
        return row.turns.filter(index=self.turns).exists()

    @staticmethod
    def _again(trajectory: Any) -> Any:
        return type(trajectory).objects.get(pk=trajectory.pk)

    def _rest(self) -> None:
        """Until the pool has a clean desktop again: both begin with one."""
        from webapp.fleet.models import Desktop

        ready = Desktop.objects.filter(provider="qemu", phase__in=("ready", "leased"))
        self._wait(lambda: ready.exists() and not self._busy(), "a clean desktop")
        time.sleep(1.0)

    @staticmethod
    def _busy() -> bool:
        from webapp.fleet.models import Desktop

        return Desktop.objects.filter(provider="qemu", phase__in=("starting", "resetting")).exists()

    @staticmethod
    def _wait(condition: Any, what: str) -> None:
        wait_for(what, condition, patience_s=LIMIT_S, poll_s=POLL_S)


def long_task(turns: int) -> Task:
    """A menu that the oracle walks to and fro before it chooses the right row."""
    from training.content.task_sets import first_desk

    task = max(
        (task for task in first_desk.generate() if task.family == "menu"),
        key=lambda task: len(task.oracle["actions"]),
    )
    actions = list(task.oracle["actions"])
    to_and_fro = [{"kind": "key", "keys": ["Down"]}, {"kind": "key", "keys": ["Up"]}]
    missing = turns + 2 - len(actions)
    more = (to_and_fro * turns)[: missing + missing % 2] if missing > 0 else []
    longer = [*actions[:-2], *more, *actions[-2:]]
    oracle = {**task.oracle, "actions": longer}
    return task.model_copy(update={"oracle": oracle, "max_turns": len(longer)})


def spread(values: list[float]) -> dict[str, float]:
    return {"p50": percentile(values, 0.5), "p95": percentile(values, 0.95), "max": max(values)}


def report(figures: dict[str, Any]) -> int:
    rounds, left = figures["rounds"], figures["left"]
    passed = (
        figures["times_sooner"] > 1
        and figures["same_screen"] == figures["solved"] == rounds
        and not any(left.values())
    )
    branch, replay = figures["branch_s"], figures["replay_s"]
    rows = [
        (f"branch from turn {figures['turns_before'] + 1}: click to first screen p50, s", branch["p50"], ""),
        ("... p95, s", branch["p95"], ""),
        ("... the first one, which makes the template, s", figures["first_branch_s"], ""),
        (f"replaying the {figures['turns_before']} turns on a fresh clone p50, s", replay["p50"], ""),
        ("... p95, s", replay["p95"], ""),
        ("branching is sooner, times", figures["times_sooner"], "> 1"),
        ("branches with the parent's very picture", figures["same_screen"], f"= {rounds}"),
        ("branches solved", figures["solved"], f"= {rounds}"),
        ("snapshots of the parent", figures["snapshots"], ""),
        ("the desktop stands still for one p50, s", figures["pause_s"]["p50"], ""),
        ("... max (the first one fills QEMU's memory with the template's), s", figures["pause_s"]["max"], ""),
        ("the episode waits for one p50, s", figures["took_s"]["p50"], ""),
        ("size of one p50, MB", figures["size_mb"]["p50"], ""),
        ("... max, MB", figures["size_mb"]["max"], ""),
        ("a turn without snapshots p50, s", figures["turn_without_s"], ""),
        ("a turn with one p50, s", figures["turn_with_s"], ""),
        ("snapshots left after the trajectories were deleted", left["folders"] + left["rows"], "= 0"),
        ("machine load while measuring", figures["load"], ""),
    ]
    rounded = [(name, round(value, 3), bar) for name, value, bar in rows]
    print_table(("figure", "measured", "bar"), rounded)
    return finish("branch", figures, passed=passed)


if __name__ == "__main__":
    sys.exit(main())
