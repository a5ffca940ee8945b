"""The stages of an experiment, run by every rank; only rank 0 has a coordinator.

    demonstrations -> sft -> evaluation-before -> grpo -> evaluation-after

Each stage can be left by an Interrupted between two units of work and entered again from
the state of a checkpoint.
"""

from training.contracts.stage_names import StageName
from training.contracts.trainer_state import LearningStage
from training.loop.evaluation import evaluate, save_evaluated
from training.loop.eye_test import eye_test
from training.loop.grpo_stage import run_grpo
from training.loop.sft_stage import run_sft
from training.loop.stage_context import Experiment
from training.update.learning_rates import grpo_rates


def run(experiment: Experiment) -> None:
    """All stages from where the state stands. Raises Interrupted on pause, cancel and SIGTERM."""
    state, config = experiment.state, experiment.config
    metrics = experiment.sync_weights()
    eye_test(experiment)
    experiment.report(lambda c: c.report_metrics(state.grpo_step, metrics, state.policy_version))
    if state.stage is not LearningStage.GRPO:
        if config.sft.enabled:
            run_sft(experiment)
        state.enter(LearningStage.GRPO)
        experiment.learner.use_rates(grpo_rates(config.optimiser))
        experiment.save()
    evaluates = config.evaluation.num_tasks > 0
    if evaluates and config.evaluation.before and not state.was_evaluated_before:
        result = evaluate(experiment, "before", stage_name=StageName.EVALUATION_BEFORE)
        state.was_evaluated_before = True
        save_evaluated(experiment, result)
    run_grpo(experiment)
    if evaluates and config.evaluation.after and not state.was_evaluated_after:
        result = evaluate(experiment, "after", stage_name=StageName.EVALUATION_AFTER)
        state.was_evaluated_after = True
        save_evaluated(experiment, result, ties=True)
