"""The stages of an experiment: names, order, labels."""

from enum import StrEnum

from training.contracts.config import ExperimentConfig


class StageName(StrEnum):
    """A part of an experiment with a progress of its own, in the order in which they run."""

    DEMONSTRATIONS = "demonstrations"
    SFT = "sft"
    EVALUATION_BEFORE = "evaluation-before"
    GRPO = "grpo"
    EVALUATION_AFTER = "evaluation-after"


STAGE_LABELS: dict[str, str] = {
    StageName.DEMONSTRATIONS: "Demonstrations",
    StageName.SFT: "SFT",
    StageName.EVALUATION_BEFORE: "Evaluation before",
    StageName.GRPO: "GRPO",
    StageName.EVALUATION_AFTER: "Evaluation after",
}
ONLY_EVALUATION = (StageName.EVALUATION_BEFORE,)
"""The stages of an experiment that measures a checkpoint and trains nothing."""


def stages_of(config: ExperimentConfig) -> tuple[StageName, ...]:
    """The stages that this config will run, in order."""
    if config.evaluation.only:
        return ONLY_EVALUATION
    evaluates = config.evaluation.num_tasks > 0
    will_run = {
        StageName.DEMONSTRATIONS: config.sft.enabled,
        StageName.SFT: config.sft.enabled,
        StageName.EVALUATION_BEFORE: evaluates and config.evaluation.before,
        StageName.GRPO: True,
        StageName.EVALUATION_AFTER: evaluates and config.evaluation.after,
    }
    return tuple(stage for stage in StageName if will_run[stage])
