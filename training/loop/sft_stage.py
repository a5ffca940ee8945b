"""The SFT stage: demonstrations of oracles or people, then imitation until held-out success says stop."""

import logging
import random
from collections import Counter
from collections.abc import Sequence

from training.batch.demonstrations_and_questions import SftDataset, sft_sample
from training.contracts.stage_names import StageName
from training.contracts.trainer_reports import Alarm, ReplaySkip, SkipReason
from training.contracts.trainer_state import LearningStage
from training.contracts.types import Purpose, Source, Task, Trajectory
from training.distributed.interrupts import on_main
from training.loop.evaluation import evaluate
from training.loop.stage_context import Experiment, stage
from training.render.demonstrations import NotRenderable, as_demonstration, check_end
from training.rewards.success_rule import success_rule
from training.rollouts.group_collector import GroupSpec
from training.rollouts.picture_check import PictureCheck
from training.rollouts.task_order import TaskOrder
from training.update.learning_rates import sft_rate_scale, sft_rates

logger = logging.getLogger(__name__)

MAX_PASSES = 3
"""Times that missing demonstrations are asked for: an oracle that fails on a desktop may pass later."""
METRICS_EVERY = 10
"""SFT steps between two metric points; the last one has one, too."""


def run_sft(experiment: Experiment) -> None:
    """Record what is missing, then train until `sft.stop_at_success` on held-out tasks or `max_steps`."""
    state, config = experiment.state, experiment.config.sft
    collect = {"oracle": collect_demonstrations, "replay": curated_demonstrations}[config.source]
    dataset = SftDataset.from_trajectories(
        collect(experiment),
        experiment.renderer,
        locator_questions=config.locator_questions,
        max_tokens=experiment.config.sampling.max_context_tokens,
    )
    if state.stage is not LearningStage.SFT:
        state.enter(LearningStage.SFT)
        experiment.learner.use_rates(sft_rates(config))
    with stage(experiment, StageName.SFT, config.max_steps, "steps"):
        while state.sft_step < config.max_steps:
            _step(experiment, dataset)
            if state.sft_step % config.evaluate_every and state.sft_step < config.max_steps:
                continue
            if _evaluate(experiment) >= config.stop_at_success:
                break


def _step(experiment: Experiment, dataset: SftDataset) -> None:
    state, config = experiment.state, experiment.config
    # The seed of a step is its number: a resumed stage goes on with the same batches.
    rng = random.Random(f"{config.optimiser.seed}/sft/{state.sft_step}")
    rows = [row for part in dataset.batch(config.sft.batch_size, rng) for row in part]
    samples = [sft_sample(row, index) for index, row in enumerate(rows, start=1)]
    scale = sft_rate_scale(state.sft_step, config.sft.max_steps)
    result = experiment.learner.likelihood_step(samples, scale)
    state.sft_step += 1
    if state.sft_step % METRICS_EVERY == 0 or state.sft_step == config.sft.max_steps:
        values = {
            "sft/loss": result.loss,
            "sft/grad_norm": result.grad_norm,
            "sft/learning_rate": result.learning_rate,
            "sft/entropy": result.metrics["loss/entropy"],
        }
        logger.info("sft step %d: loss %.3f grad %.3g", state.sft_step, result.loss, result.grad_norm)
        experiment.report(lambda c: c.report_metrics(state.sft_step, values, state.policy_version))
        experiment.report(lambda c: c.report_progress(StageName.SFT, state.sft_step, config.sft.max_steps))
        on_main(experiment.world, lambda: _check_control(experiment))


def _check_control(experiment: Experiment) -> None:
    if experiment.collector is not None:
        experiment.collector.check_control()


def _evaluate(experiment: Experiment) -> float:
    """Held-out success of the weights as they are, partial scores in part; saves a checkpoint."""
    state = experiment.state
    state.policy_version += 1
    values = experiment.sync_weights()
    if not experiment.config.evaluation.num_tasks:
        experiment.save()
        return 0.0
    result = evaluate(experiment, "sft", step=state.sft_step, sampled_only=True)
    if result.is_complete:
        values["sft/success"] = result.graded
    logger.info("sft step %d: held-out success %.0f%%", state.sft_step, 100 * result.graded)
    experiment.report(lambda c: c.report_metrics(state.sft_step, values, state.policy_version))
    experiment.save()
    return result.graded if result.is_complete else 0.0


def collect_demonstrations(experiment: Experiment) -> list[Trajectory]:
    """Oracle trajectories on train tasks, `demonstrations_per_family` of each family. A collective.

    Raises ValueError when a family has none: its oracle does not solve it.
    """
    wanted = experiment.config.sft.demonstrations_per_family
    by_family: dict[str, list[Task]] = {}
    for task in experiment.tasks("train", for_sft=True):
        by_family.setdefault(task.family, []).append(task)
    total = sum(min(wanted, len(tasks)) for tasks in by_family.values())
    with stage(experiment, StageName.DEMONSTRATIONS, total, "trajectories"):
        for _ in range(MAX_PASSES):
            found = _demonstrations(experiment)
            have = Counter(trajectory.task.family for trajectory in found)
            missing = _missing_tasks(by_family, found, have, wanted)
            if not missing:
                break
            request = GroupSpec(
                size=1,
                purpose=Purpose.DEMONSTRATION,
                step=0,
                temperature=1.0,
                policy_version=experiment.state.policy_version,
                source=Source.ORACLE,
            )
            experiment.collect(missing, [request], StageName.DEMONSTRATIONS)
        found = _demonstrations(experiment)
    known = [trajectory for trajectory in found if trajectory.task.family in by_family]
    imitable = _imitable_ones(experiment, known)
    have = Counter(trajectory.task.family for trajectory in imitable)
    if lacking := [family for family in by_family if not have[family]]:
        raise ValueError(
            f"sft: no oracle demonstration of {', '.join(lacking)} can be imitated: none succeeded (run "
            "verify_tasks), or sampling.max_context_tokens or prompt.dialect leaves all out (see the log)"
        )
    return imitable


def _imitable_ones(experiment: Experiment, demonstrations: list[Trajectory]) -> list[Trajectory]:
    """As this experiment's policy would have done them; an alarm counts those that it cannot do."""
    found: list[Trajectory] = []
    problems: list[str] = []
    lost = on_main(experiment.world, lambda: _lost_screenshots(experiment, demonstrations))
    for trajectory in demonstrations:
        if trajectory.trajectory_id in lost:
            problems.append(lost[trajectory.trajectory_id])
            continue
        try:
            found.append(_imitable(experiment, trajectory))
        except NotRenderable as error:
            problems.append(str(error))
    if problems:
        number = f"{len(problems)} of {len(demonstrations)} demonstrations were left out"
        logger.warning("%s: %s", number, "; ".join(sorted(set(problems))))
        alarm = Alarm(
            name="demonstrations_left_out",
            step=experiment.state.sft_step,
            value=float(len(problems)),
            limit=0.0,
            message=f"{number}, the first because {problems[0]}",
            remedy="For long ones raise sampling.max_context_tokens, or use prompt.history: window; for "
            "actions that cannot be written choose another prompt.dialect.",
        )
        experiment.report(lambda c: c.report_alarms(alarm.step, [alarm]))
    return found


def curated_demonstrations(experiment: Experiment) -> list[Trajectory]:
    """Accepted and gold successes of the train tasks, at most `demonstrations_per_family`. A collective.

    Those that this experiment's model cannot imitate are skipped and reported. Raises ValueError when there
    are none.
    """
    wanted, tasks = experiment.config.sft.demonstrations_per_family, experiment.tasks("train", for_sft=True)

    rule = success_rule(experiment.config.algorithm, experiment.config.rewards)

    def collect() -> tuple[list[Trajectory], list[ReplaySkip]]:
        assert experiment.coordinator is not None
        found: list[Trajectory] = []
        skips: list[ReplaySkip] = []
        have: Counter[str] = Counter()
        for task in tasks:
            for candidate in experiment.coordinator.replay_candidates(task.task_id):
                if have[task.family] >= wanted:
                    break
                try:
                    for message in _lost_screenshots(experiment, [candidate.trajectory]).values():
                        raise NotRenderable(SkipReason.LOST_SCREENSHOT, message)
                    check_end(candidate.trajectory, rule)
                    found.append(_imitable(experiment, candidate.trajectory))
                except NotRenderable as error:
                    entry = candidate.entry_id
                    skips.append(ReplaySkip(entry_id=entry, reason=error.reason, message=str(error)))
                else:
                    have[task.family] += 1
        if skips:
            experiment.coordinator.report_replay_skips(skips)
        return found, skips

    demonstrations, skips = on_main(experiment.world, collect)
    if not demonstrations:
        why = f"; {len(skips)} could not be used, the first because {skips[0].message}" if skips else ""
        raise ValueError(
            f"sft.source: the replay buffer has no accepted success of these tasks{why}; record or import "
            "demonstrations and accept them, or use oracle"
        )
    return demonstrations


def _lost_screenshots(experiment: Experiment, demonstrations: Sequence[Trajectory]) -> dict[int, str]:
    """trajectory_id -> why, of those whose screenshots are not what was recorded. Rank 0 only."""
    pictures, found = PictureCheck(experiment.png), {}
    for trajectory in demonstrations:
        shas = {turn.observation.sha256 for turn in trajectory.turns} - {""}
        for sha, why in pictures.lost(shas).items():
            found[trajectory.trajectory_id] = (
                f"trajectory {trajectory.trajectory_id}: screenshot {sha[:12]} {why}"
            )
    return found


def _imitable(experiment: Experiment, trajectory: Trajectory) -> Trajectory:
    """The trajectory as this experiment's policy would have done it. Raises NotRenderable."""
    return as_demonstration(trajectory, experiment.renderer, experiment.config.sampling)


def _demonstrations(experiment: Experiment) -> list[Trajectory]:
    coordinator = experiment.coordinator
    return on_main(experiment.world, lambda: coordinator.demonstrations() if coordinator else [])


def _missing_tasks(
    by_family: dict[str, list[Task]],
    found: list[Trajectory],
    have: Counter[str],
    wanted: int,
) -> list[Task]:
    """Tasks to demonstrate, at most each once per pass: `demonstrations()` keeps one per task."""
    seen = {trajectory.task.task_id for trajectory in found}
    missing: list[Task] = []
    for family, tasks in by_family.items():
        count = max(0, min(wanted, len(tasks)) - have[family])
        new = [task for task in tasks if task.task_id not in seen]
        order = TaskOrder(new or tasks, seed=0)
        missing += order.take(0, count)
    return missing
