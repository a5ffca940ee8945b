"""Record oracle demonstrations of first-desk on real desktops, for `training.content.recipes.first_desk`.

    python -m workers.desktops.host --state-dir /tmp/dh --socket /tmp/dh/s &
    python scripts/record_demonstrations.py /tmp/dh/s OUTPUT [--families menu,note,colour] [--desktops 4]
        [--more-screens 1100]

`--more-screens` adds that many colour tasks of another seed, which are not in the set.
Writes OUTPUT/trajectories.jsonl (train split), OUTPUT/heldout.jsonl and OUTPUT/frames/SHA.png.
"""

from __future__ import annotations

import argparse
import queue
import sys
import threading
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from training.content.task_sets.first_desk import FAMILIES, generate
from training.content.task_sets.task_family import family_tasks
from training.contracts.types import (
    ActionKind,
    Observation,
    Source,
    Task,
    Trajectory,
    TrajectoryStatus,
    Turn,
)
from workers.desktops.contract import DesktopSpec, EnvError
from workers.desktops.frame import Frame
from workers.desktops.host.client import DeskHostClient
from workers.desktops.leased_desktop import DesktopEnv
from workers.tasks import oracles, prepare_and_score
from workers.tasks.errors import EvaluatorError, OracleError, SetupError

LEASE_S = 3600.0
OTHER_SEED = 7
"""Of the further screens."""


class Recorder:
    """Drives one desktop per thread through a queue of tasks."""

    def __init__(self, socket: str, output: Path, tasks: list[Task]) -> None:
        self.socket = socket
        self.frames = output / "frames"
        self.frames.mkdir(parents=True, exist_ok=True)
        self.tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in tasks:
            self.tasks.put(task)
        self.done: list[Trajectory] = []
        self.failed: list[str] = []

    def run(self, num_desktops: int) -> None:
        threads = [threading.Thread(target=self._work) for _ in range(num_desktops)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        with DeskHostClient(self.socket) as client:
            lease = client.acquire("x11", DesktopSpec(width=512, height=384), holder="record", ttl_s=LEASE_S)
            with DesktopEnv(client, lease) as env:
                while True:
                    try:
                        task = self.tasks.get_nowait()
                    except queue.Empty:
                        return
                    self._record(env, task)

    def _record(self, env: DesktopEnv, task: Task) -> None:
        try:
            trajectory = self._demonstrate(env, task)
        except (EnvError, SetupError, EvaluatorError, OracleError) as error:
            self.failed.append(f"{task.task_id}: {error}")
            return
        if trajectory.score == 1.0:
            self.done.append(trajectory)
        else:
            self.failed.append(f"{task.task_id}: score {trajectory.score}")

    def _demonstrate(self, env: DesktopEnv, task: Task) -> Trajectory:
        env.reset()
        prepare_and_score.setup(task, env)
        turns: list[Turn] = []
        for index, action in enumerate(oracles.solution(task)):
            observation = self._observation(env.observe(), task.instruction if index == 0 else "")
            turns.append(Turn(index=index, source=Source.ORACLE, observation=observation, action=action))
            if action.kind is not ActionKind.TERMINATE:
                env.act(action)
        score = prepare_and_score.evaluate(task, env, turns[-1].action)
        number = len(self.done) + 1
        return Trajectory(
            trajectory_id=number,
            group_id=number,
            task=task,
            source=Source.ORACLE,
            status=TrajectoryStatus.TERMINATED,
            turns=tuple(turns),
            score=score,
            reward=score,
        )

    def _observation(self, frame: Frame, text: str) -> Observation:
        (self.frames / f"{frame.sha256}.png").write_bytes(frame.png)
        return Observation(sha256=frame.sha256, width=frame.width, height=frame.height, text=text)


def further_tasks(count: int) -> list[Task]:
    """Colour tasks of another seed; none is the same as one of the set."""
    known = {(task.instruction, str(task.config)) for task in generate()}
    (colour,) = (family for family in FAMILIES if family.name == "colour")
    more = family_tasks(replace(colour, num_train=count, num_heldout=0), OTHER_SEED)
    return [
        task.model_copy(update={"task_id": f"more/{task.task_id}"})
        for task in more
        if (task.instruction, str(task.config)) not in known
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("socket", help="socket of a running desk host")
    parser.add_argument("output", type=Path)
    parser.add_argument("--families", default="menu,note,colour")
    parser.add_argument("--desktops", type=int, default=4)
    parser.add_argument("--more-screens", type=int, default=0, help="colour tasks beyond the set's")
    options = parser.parse_args()
    families = options.families.split(",")
    for split, name in (("train", "trajectories.jsonl"), ("heldout", "heldout.jsonl")):
        tasks = [task for task in generate() if task.family in families and task.split == split]
        if split == "train":
            tasks += further_tasks(options.more_screens)
        recorder = Recorder(options.socket, options.output, tasks)
        recorder.run(options.desktops)
        lines = [trajectory.model_dump_json(exclude_defaults=True) for trajectory in recorder.done]
        (options.output / name).write_text("\n".join(lines) + "\n")
        print(f"{split}: {len(recorder.done)} demonstrations, {len(recorder.failed)} failed")
        for failure in recorder.failed:
            print(f"  {failure}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
