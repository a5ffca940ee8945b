"""The GRPO stage: rollouts, update, weight sync and reports, step after step."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from training.contracts.config import ExperimentConfig
from training.contracts.stage_names import StageName
from training.contracts.trainer_reports import Alarm
from training.contracts.types import Group
from training.distributed.interrupts import on_main
from training.distributed.world import World
from training.loop.alarms import StepFacts, check_step
from training.loop.evaluation import evaluate, save_evaluated
from training.loop.roll_back import roll_back_if_collapsed
from training.loop.stage_context import Experiment, stage
from training.rewards.success_rule import success_rule
from training.rollouts.coordinator_client import CoordinatorClient
from training.rollouts.curriculum import SolveRateCurriculum
from training.rollouts.picture_check import PictureCheck
from training.rollouts.step_batch import StepBatch, build_step_batch
from training.rollouts.task_order import TaskOrder
from training.rollouts.temperature_schedule import temperature_at
from training.update.step_result import StepResult

logger = logging.getLogger(__name__)


@contextmanager
def engine_asleep(
    config: ExperimentConfig, world: World, coordinator: CoordinatorClient | None
) -> Iterator[None]:
    """Around a computation that needs the memory of a colocated engine; a collective.

    `coordinator`: None on ranks other than 0. Engines with GPUs of their own go on.
    After an error the engine stays asleep: the attempt ends, and the next one starts the engine anew.
    """
    if not config.engine.gives_memory:
        yield
        return
    on_main(world, lambda: coordinator.engine("sleep") if coordinator else None)
    yield
    if world.device.type == "cuda":
        # Activations are free, but this process still holds them; the engine needs them now.
        torch.cuda.empty_cache()
    on_main(world, lambda: coordinator.engine("wake") if coordinator else None)


def run_grpo(experiment: Experiment) -> None:
    """GRPO steps until `algorithm.num_steps`, or until `algorithm.max_seconds` are over."""
    config, state = experiment.config, experiment.state
    started = time.monotonic()
    total = config.algorithm.num_steps
    if state.grpo_step >= total:
        return
    experiment.use_order(_order(experiment))
    with stage(experiment, StageName.GRPO, total, "steps"):
        experiment.report(lambda c: c.report_progress(StageName.GRPO, state.grpo_step, total))
        while state.grpo_step < total:
            grpo_step(experiment)
            done = state.grpo_step
            experiment.report(lambda c: c.report_progress(StageName.GRPO, state.grpo_step, total))
            every = config.evaluation.every
            if every and done % every == 0 and done < total and config.evaluation.num_tasks:
                save_evaluated(experiment, evaluate(experiment, "during"))
            elif done % config.checkpoints.every == 0 or done == total:
                experiment.save()
            if done < total and _is_over(experiment, started):
                experiment.cancel_groups_in_flight()
                experiment.save()
                break


def _is_over(experiment: Experiment, started: float) -> bool:
    """Whether the time of the stage is used up; every rank hears the same, whatever its clock says."""
    limit_s = experiment.config.algorithm.max_seconds
    return bool(limit_s) and on_main(experiment.world, lambda: time.monotonic() - started >= limit_s)


def grpo_step(experiment: Experiment) -> StepResult | None:
    """One step: rollouts, update, weight sync, reports. None when nothing could be learned from it."""
    config, state = experiment.config, experiment.state
    started = time.monotonic()
    groups = experiment.next_groups()
    sampled = time.monotonic()
    batch = on_main(experiment.world, lambda: _prepare(experiment, groups))
    result = None
    if batch.samples:
        experiment.learner.use_temperature(temperature_at(config.sampling, state.grpo_step))
        with engine_asleep(config, experiment.world, experiment.coordinator):
            result = experiment.learner.policy_step(batch.samples, state.grpo_step, state.rate_scale)
    trained = time.monotonic()
    experiment.solve_rates.record(groups, success_rule(config.algorithm, config.rewards))
    state.grpo_step += 1
    metrics = batch.metrics | (result.metrics if result else {})
    if result is not None and result.has_moved:
        state.policy_version += 1
        metrics |= experiment.sync_weights()
    metrics |= {
        "time/rollout_s": sampled - started,
        "async/trainer_wait_s": sampled - started,
        "time/train_s": trained - sampled,
        "time/step_s": time.monotonic() - started,
        "policy/version": float(state.policy_version),
    }
    alarms = _report(experiment, batch, result, metrics)
    experiment.report_saved()
    roll_back_if_collapsed(experiment, alarms)
    return result


def _order(experiment: Experiment) -> TaskOrder:
    """The order of the train tasks. `solve_rates` is read at every choice, so it may change meanwhile."""
    config, tasks = experiment.config, experiment.tasks("train")
    seed, shares = config.optimiser.seed, config.tasks.family_shares
    if config.tasks.curriculum == "solve_rate":
        floor = config.tasks.curriculum_floor
        return SolveRateCurriculum(tasks, seed, experiment.solve_rates, floor, shares=shares)
    return TaskOrder(tasks, seed, shares=shares)


def _prepare(experiment: Experiment, groups: list[Group]) -> StepBatch:
    assert experiment.coordinator is not None
    return build_step_batch(
        groups,
        experiment.renderer,
        experiment.config,
        candidates=experiment.coordinator.replay_candidates,
        replay=experiment.replay,
        policy_version=experiment.state.policy_version,
        vocabulary=experiment.learner.policy.vocabulary,
        pictures=PictureCheck(experiment.png),
    )


def _report(
    experiment: Experiment, batch: StepBatch, result: StepResult | None, metrics: dict[str, float]
) -> list[Alarm]:
    """Metrics, advantages, replay uses and alarms of the step that just ended; step numbers start at 1."""
    state, step = experiment.state, experiment.state.grpo_step
    facts = StepFacts(
        step=step,
        metrics=metrics,
        groups=batch.groups,
        was_skipped=bool(result and result.was_skipped),
        history=experiment.history,
        config=experiment.config,
    )
    alarms = check_step(facts)
    experiment.history.remember(metrics, facts.temperature, experiment.config.alarms)
    logger.info(
        "step %d: reward %.3f solved %.0f%% entropy %.3f grad %.3g rollout %.1fs train %.1fs",
        step, metrics["rollout/reward_mean"], 100 * metrics["rollout/solved"],
        metrics.get("loss/entropy", 0.0), metrics.get("optimiser/grad_norm", 0.0),
        metrics["time/rollout_s"], metrics["time/train_s"],
    )  # fmt: skip
    if experiment.coordinator is None:
        return alarms
    coordinator, per_sequence = experiment.coordinator, result.per_sequence if result else {}
    finite = {name: value for name, value in metrics.items() if abs(value) < float("inf")}
    coordinator.report_metrics(step, finite, state.policy_version)
    coordinator.report_members(batch.member_updates(per_sequence))
    if uses := batch.replay_uses(step, per_sequence):
        coordinator.report_replay_uses(uses)
    if batch.skips:
        coordinator.report_replay_skips(batch.skips)
    coordinator.report_alarms(step, alarms)
    return alarms
