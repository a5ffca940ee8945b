"""What all stages of an experiment share: trainer, coordinator, state and checkpoints."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from training.checkpoints.store import CheckpointStore, ExperimentState, folder_bytes
from training.contracts.config import ExperimentConfig
from training.contracts.eye_test import EyeTest
from training.contracts.stage_names import StageName
from training.contracts.trainer_reports import CheckpointReport
from training.contracts.trainer_state import COMPLETE, LearningStage
from training.contracts.types import Group, Task
from training.distributed.interrupts import on_main
from training.distributed.world import World
from training.loop.alarm_history import AlarmHistory
from training.loop.checkpoint_room import wait_for_room
from training.render.renderer import Renderer
from training.rollouts.coordinator_client import CoordinatorClient
from training.rollouts.curriculum import SolveRates
from training.rollouts.group_collector import (
    GroupCollector,
    GroupSpec,
    PendingGroups,
    WeightsLost,
)
from training.rollouts.groups_in_flight import GroupsInFlight
from training.rollouts.replay_injection import ReplayState
from training.rollouts.task_order import TaskOrder
from training.update.learner import Learner
from training.update.learning_rates import sft_rates
from training.weights.sync import WeightSync

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SavedCheckpoint:
    """A checkpoint that this process wrote."""

    position: tuple[str, int, int, int]
    """Stage, steps of SFT and GRPO, policy version: where the same, weights and optimiser are the same."""
    folder: Path
    success: float | None
    """Held-out, of 0..1; None = not evaluated."""

    def is_there(self) -> bool:
        return (self.folder / COMPLETE).exists()


@dataclass(slots=True, kw_only=True)
class Experiment:
    """Everything that the stages share."""

    config: ExperimentConfig
    world: World
    learner: Learner
    renderer: Renderer
    sync: WeightSync
    checkpoints: CheckpointStore
    source: Path
    """Model folder that the experiment started from."""
    png: Callable[[str], bytes]
    """sha256 -> that screenshot."""
    coordinator: CoordinatorClient | None = None
    """None on ranks other than 0."""
    collector: GroupCollector | None = None
    """None on ranks other than 0."""
    in_flight: GroupsInFlight | None = None
    """What is being sampled for this step and the coming ones; rank 0 only, in the GRPO stage."""
    unreported: CheckpointReport | None = None
    """What the coordinator will hear of the checkpoint that is being written."""
    saved: SavedCheckpoint | None = None
    """The newest checkpoint of this process."""
    eyes: EyeTest | None = None
    """Of the newest weights that were tested."""
    state: ExperimentState = field(default_factory=ExperimentState)
    history: AlarmHistory = field(default_factory=AlarmHistory)
    replay: ReplayState = field(default_factory=ReplayState)
    solve_rates: SolveRates = field(default_factory=SolveRates)

    def report(self, send: Callable[[CoordinatorClient], Any]) -> None:
        """Let rank 0 send a report."""
        if self.coordinator is not None:
            send(self.coordinator)

    def collect(
        self, tasks: list[Task], requests: Sequence[GroupSpec], stage: StageName | None
    ) -> list[list[Group]]:
        """Groups of `tasks` for each of the requests, on every rank; `stage` gets the progress."""
        tickets: list[PendingGroups] = []

        def work() -> list[list[Group]]:
            assert self.collector is not None, "rank 0 has rollouts"
            if not tickets:
                tickets.extend(self.collector.ask(tasks, request) for request in requests)
            return self.collector.wait_for_all(tickets, progress)

        def progress(done: int, total: int) -> None:
            if stage:
                self.report(lambda c: c.report_progress(stage, done, total))

        return self.wait_for(work)

    def wait_for(self, work: Callable[[], T]) -> T:
        """Groups that `work` waits for on rank 0, on every rank; a restarted engine gets its weights again.

        `work` is begun anew after that. Raises Interrupted. A collective.
        """

        def attempt() -> T | None:
            try:
                return work()
            except WeightsLost:
                return None

        while (found := on_main(self.world, attempt)) is None:
            logger.warning("the engine was started again: it gets the current weights")
            self.sync_weights()
        return found

    def use_order(self, order: TaskOrder) -> None:
        """Sample the train tasks in this order from now on, from where the state stands."""
        if self.collector is not None:
            self.in_flight = GroupsInFlight(
                collector=self.collector, order=order, config=self.config, state=self.state
            )

    def next_groups(self) -> list[Group]:
        """The groups of the step that begins, on every rank. Raises Interrupted. A collective."""

        def work() -> list[Group]:
            assert self.in_flight is not None, "use_order comes first"
            return self.in_flight.next_groups()

        return self.wait_for(work)

    def cancel_groups_in_flight(self) -> None:
        """Give up on what is being sampled for coming steps."""
        if self.in_flight is not None:
            self.in_flight.cancel()

    def tasks(self, split: Literal["train", "heldout"], *, for_sft: bool = False) -> list[Task]:
        """Tasks of a split on every rank."""
        ask = self.coordinator.tasks if self.coordinator else None
        return on_main(self.world, lambda: ask(split, for_sft=for_sft) if ask else [])

    def sync_weights(self) -> dict[str, float]:
        """Push the current weights as `state.policy_version`; sync/* metrics."""
        return self.sync.push(self.state.policy_version).metrics()

    def save(self, *, is_best: bool = False, success: float | None = None) -> Path:
        """Write a checkpoint; returns its folder. A collective.

        With `checkpoints.asynchronous` the folder appears later: see `finish_save`. When no step was made
        since the last one (an evaluation in between, a pause), that one gets the new state instead. Waits
        while the disk has no room; raises Interrupted when that wait is cancelled.
        """
        self.finish_save()
        state = self.state
        if is_best and success is not None:
            state.best_success = success
        self.history.last_checkpoint_step = state.grpo_step
        state.replay, state.alarms = self.replay.to_json(), self.history.to_json()
        state.solve_rates = self.solve_rates.counts
        last, position = self.saved, (state.stage, state.sft_step, state.grpo_step, state.policy_version)
        if last is not None and last.position == position and on_main(self.world, last.is_there):
            folder = last.folder
            self.checkpoints.replace_state(folder, state, self.world, is_best=is_best)
            is_best = folder.name == state.best_checkpoint
            success = last.success if success is None else success
        else:
            on_main(self.world, self._wait_for_room)
            folder = self.checkpoints.start(self.learner, state, self.source, is_best=is_best)
        self.saved = SavedCheckpoint(position, folder, success)
        self.unreported = CheckpointReport(
            step=state.stage_step,
            path=str(folder),
            policy_version=state.policy_version,
            is_best=is_best,
            success=success,
        )
        if not self.config.checkpoints.asynchronous:
            self.finish_save()
        return folder

    def _wait_for_room(self) -> None:
        if self.coordinator is not None:
            wait_for_room(self.coordinator, self.checkpoints, self.learner)

    def finish_save(self) -> None:
        """Wait for the checkpoint that is being written, and report it. A collective."""
        self.checkpoints.wait_for_save()
        self.report_saved()

    def secure_last(self) -> None:
        """Write the newest checkpoint again until it is there: a full disk may have cost it.

        Raises Interrupted when the wait for room is cancelled. A collective.
        """
        self.finish_save()
        while self.saved is not None and not on_main(self.world, self.saved.is_there):
            is_best = self.state.best_checkpoint == self.saved.folder.name
            self.save(is_best=is_best, success=self.saved.success)
            self.finish_save()

    def report_saved(self) -> None:
        """Report a checkpoint that has been written meanwhile, and delete old ones."""
        if self.unreported is None or not self.checkpoints.is_idle:
            return
        report, self.unreported = self.unreported, None
        if self.coordinator is None or not (Path(report.path) / COMPLETE).exists():
            return  # the disk was full; the next one waits for room
        size = folder_bytes(Path(report.path))
        self.coordinator.report_checkpoint(report.model_copy(update={"bytes": size}))
        for gone in self.checkpoints.prune(
            self.state.best_checkpoint, in_use=self.coordinator.checkpoints_in_use()
        ):
            self.coordinator.report_checkpoint_deleted(str(gone))

    def close(self) -> None:
        """Finish what goes on in the background. A collective."""
        self.finish_save()
        self.sync.close()

    def resume(self, folder: Path) -> None:
        """Take up the state of a checkpoint. A collective."""
        self.state = self.checkpoints.read_state(folder)
        self.replay = ReplayState.from_json(self.state.replay)
        self.history = AlarmHistory(**self.state.alarms)
        self.solve_rates = SolveRates(self.state.solve_rates)
        if self.state.stage is LearningStage.SFT:
            self.learner.use_rates(sft_rates(self.config.sft))
        self.checkpoints.load(folder, self.learner)
        report = CheckpointReport(
            step=self.state.stage_step,
            path=str(folder),
            policy_version=self.state.policy_version,
            is_best=folder.name == self.state.best_checkpoint,
            bytes=folder_bytes(folder),
        )
        self.report(lambda c: c.report_resumed(report))


@contextmanager
def stage(experiment: Experiment, name: StageName | None, total: int, unit: str) -> Iterator[None]:
    """Report that a stage started, and that it finished when nothing failed in it; None reports nothing."""
    if name is None:
        yield
        return
    experiment.report(lambda c: c.report_stage(name, "started", total, unit))
    yield
    experiment.report(lambda c: c.report_stage(name, "finished", total, unit))
