"""What all stages of an experiment share: trainer, coordinator, state and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.alarms import AlarmHistory
from training.checkpoints import CheckpointStore, ExperimentState, folder_bytes
from training.config import ExperimentConfig
from training.coordinator import Coordinator
from training.curriculum import evaluation_tasks
from training.evaluation import evaluate_groups
from training.interrupts import on_main
from training.optimisers import sft_rates
from training.parallel import World
from training.rendering import Renderer
from training.replay import ReplayState
from training.rollouts import GroupRequest, Rollouts, Ticket
from training.solve_rates import SolveRates
from training.trainer import Trainer
from training.types import EvaluationResult, Group, Purpose, Task
from training.weight_sync import WeightSync


@dataclass(slots=True, kw_only=True)
class Experiment:
    """Everything that the stages share."""

    config: ExperimentConfig
    world: World
    trainer: Trainer
    renderer: Renderer
    sync: WeightSync
    checkpoints: CheckpointStore
    source: Path
    """Model folder that the experiment started from."""
    coordinator: Coordinator | None = None
    """None on ranks other than 0."""
    rollouts: Rollouts | None = None
    """None on ranks other than 0."""
    ahead: Ticket | None = None
    """Groups of the next step that are being sampled already; rank 0 only."""
    state: ExperimentState = field(default_factory=ExperimentState)
    history: AlarmHistory = field(default_factory=AlarmHistory)
    replay: ReplayState = field(default_factory=ReplayState)
    solve_rates: SolveRates = field(default_factory=SolveRates)

    def tell(self, report: Callable[[Coordinator], Any]) -> None:
        """Report something from rank 0."""
        if self.coordinator is not None:
            report(self.coordinator)

    def collect(self, tasks: list[Task], request: GroupRequest, stage: str) -> list[Group]:
        """Groups of `tasks` on every rank; `stage` gets the progress, "" for none."""

        def work() -> list[Group]:
            assert self.rollouts is not None
            return self.rollouts.wait(self.rollouts.ask(tasks, request), progress)

        def progress(done: int, total: int) -> None:
            if stage:
                self.tell(lambda c: c.report_progress(stage, done, total))

        return on_main(self.world, work)

    def tasks(self, split: str) -> list[Task]:
        """Tasks of a split on every rank."""
        return on_main(self.world, lambda: self.coordinator.tasks(split) if self.coordinator else [])

    def sync_weights(self) -> dict[str, float]:
        """Push the current weights as `state.policy_version`; sync/* metrics."""
        return self.sync.push(self.state.policy_version).metrics()

    def save(self, *, is_best: bool = False, success: float | None = None) -> Path:
        """Write a checkpoint, report it, delete old ones; returns its folder. A collective."""
        state = self.state
        if is_best and success is not None:
            state.best_success = success
        self.history.last_checkpoint_step = state.grpo_step
        state.replay, state.alarms = self.replay.to_json(), self.history.to_json()
        state.solve_rates = self.solve_rates.counts
        folder = self.checkpoints.save(self.trainer, state, self.source, is_best=is_best)
        if self.coordinator is None:
            return folder
        values = {
            "step": state.sft_step if state.stage == "sft" else state.grpo_step,
            "path": str(folder),
            "policy_version": state.policy_version,
            "is_best": is_best,
            "success": success,
            "bytes": folder_bytes(folder),
        }
        self.coordinator.report_checkpoint(values)
        for gone in self.checkpoints.prune(
            state.best_checkpoint, in_use=self.coordinator.checkpoints_in_use()
        ):
            self.coordinator.report_checkpoint_deleted(str(gone))
        return folder

    def resume(self, folder: Path) -> None:
        """Take up the state of a checkpoint. A collective."""
        self.state = self.checkpoints.read_state(folder)
        self.replay = ReplayState.from_json(self.state.replay)
        self.history = AlarmHistory(**self.state.alarms)
        self.solve_rates = SolveRates(self.state.solve_rates)
        if self.state.stage == "sft":
            self.trainer.use_rates(sft_rates(self.config.sft))
        self.checkpoints.load(folder, self.trainer)


@contextmanager
def stage(experiment: Experiment, name: str, total: int, unit: str):
    """Report that a stage started, and that it finished when nothing went wrong in it; "" reports nothing."""
    if not name:
        yield
        return
    experiment.tell(lambda c: c.report_stage(name, "started", total, unit))
    yield
    experiment.tell(lambda c: c.report_stage(name, "finished", total, unit))


def evaluate(
    experiment: Experiment, name: str, *, stage_name: str = "", step: int | None = None
) -> EvaluationResult:
    """Held-out success with the weights that the engine has now. A collective.

    `stage_name` is empty for an evaluation inside another stage; `step` defaults to the GRPO step.
    """
    config, state = experiment.config.evaluation, experiment.state
    step = state.grpo_step if step is None else step
    tasks = evaluation_tasks(experiment.tasks("heldout"), config.num_tasks)
    request = GroupRequest(
        size=1,
        purpose=Purpose.EVALUATION,
        step=step,
        temperature=config.temperature,
        policy_version=state.policy_version,
    )
    with stage(experiment, stage_name, len(tasks), "tasks"):
        groups = experiment.collect(tasks, request, stage_name)
    result = evaluate_groups(groups, name=name, step=step, policy_version=state.policy_version)
    experiment.tell(lambda c: c.report_evaluation(result))
    return result
