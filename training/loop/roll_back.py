"""Going back to the last good checkpoint when the policy collapses.

When an alarm of `checkpoints.roll_back_on` fires, weights and optimiser are those of the newest
checkpoint that was not gone back to before; a second collapse soon after thus goes further back. The
step counter, the task order and the policy version go on (tasks are not repeated, versions never mean
two things), the learning rate is multiplied by `checkpoints.roll_back_rate`, and a new checkpoint is
saved at once, so that a crash cannot resume the collapsed one.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from training.contracts.trainer_reports import Alarm
from training.contracts.trainer_state import LearningStage
from training.distributed.interrupts import on_main
from training.loop.alarm_history import AlarmHistory
from training.loop.stage_context import Experiment
from training.update.learning_rates import grpo_rates

logger = logging.getLogger(__name__)


def roll_back_if_collapsed(experiment: Experiment, alarms: Sequence[Alarm]) -> Path | None:
    """Go back when one of `alarms` asks for it; the checkpoint, None when nothing was done. A collective."""
    config, state = experiment.config.checkpoints, experiment.state
    causes = sorted({alarm.name for alarm in alarms} & set(config.roll_back_on))
    # Rank 0 decides: the ranks' own timings could make their alarms differ.
    causes = on_main(experiment.world, lambda: causes)
    if not causes or len(state.rolled_back_to) >= config.max_roll_backs:
        return None
    experiment.finish_save()
    good = on_main(experiment.world, lambda: _last_good(experiment))
    if good is None:
        logger.warning("%s: there is no checkpoint left to go back to", ", ".join(causes))
        return None
    _restore(experiment, good)
    _report(experiment, good, causes)
    return good


def _last_good(experiment: Experiment) -> Path | None:
    used = set(experiment.state.rolled_back_to) | set(experiment.state.rolled_back_saves)
    complete = experiment.checkpoints.complete()
    grpo = [
        folder for folder in complete if experiment.checkpoints.read_state(folder).stage is LearningStage.GRPO
    ]
    return next((folder for folder in reversed(grpo) if folder.name not in used), None)


def _restore(experiment: Experiment, good: Path) -> None:
    state = experiment.state
    if experiment.in_flight is not None:
        experiment.in_flight.cancel()
    # A fresh optimiser first: a checkpoint from before the first step holds no moments to overwrite with.
    experiment.learner.use_rates(grpo_rates(experiment.config.optimiser))
    experiment.checkpoints.load(good, experiment.learner)
    experiment.history = AlarmHistory(**experiment.checkpoints.read_state(good).alarms)
    state.rolled_back_to.append(good.name)
    state.rate_scale *= experiment.config.checkpoints.roll_back_rate
    state.policy_version += 1
    metrics = experiment.sync_weights() | {"checkpoint/rolled_back": float(len(state.rolled_back_to))}
    experiment.report(lambda c: c.report_metrics(state.grpo_step, metrics, state.policy_version))
    state.rolled_back_saves.append(experiment.save().name)
    experiment.finish_save()


def _report(experiment: Experiment, good: Path, causes: list[str]) -> None:
    state, why = experiment.state, ", ".join(causes)
    logger.warning("went back to %s after %s", good.name, why)
    alarm = Alarm(
        name="rolled_back",
        step=state.grpo_step,
        value=float(len(state.rolled_back_to)),
        limit=float(experiment.config.checkpoints.max_roll_backs),
        message=f"went back to checkpoint {good.name} after {why}; learning rate x {state.rate_scale:g}",
        remedy="If it happens again, lower optimiser.learning_rate or add a kl_coefficient.",
    )
    experiment.report(lambda c: c.report_alarms(alarm.step, [alarm]))
