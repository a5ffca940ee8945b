"""How a trainer ends, and which stages it goes through; trainer, gpu worker and pages read them here."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from pathlib import Path

from pydantic import BaseModel, computed_field

from training.contracts.config import ExperimentConfig
from training.contracts.types import Control


class ExitCode(IntEnum):
    """Exit code of the trainer's processes and of an export; any other one is a crash."""

    FINISHED = 0
    WRONG_SETTINGS = 2
    """The config, a file or the environment is wrong; the message says which."""
    PAUSED = 75
    """A checkpoint is saved; also after SIGTERM."""
    CANCELLED = 76

    @classmethod
    def after(cls, command: Control) -> ExitCode:
        """The code of a trainer that stopped because of `command`."""
        return cls.CANCELLED if command is Control.CANCEL else cls.PAUSED


class TrainerOutcome(BaseModel):
    """OUTPUT/outcome.json: how rank 0 ended, and what to do about it.

    Absent after a hard kill, which is a crash.
    """

    exit_code: ExitCode
    step: int = 0
    """Finished GRPO steps."""
    message: str = ""

    @computed_field
    def status(self) -> str:
        """The exit code in a word: finished | failed | paused | cancelled"""
        return "failed" if self.exit_code is ExitCode.WRONG_SETTINGS else self.exit_code.name.lower()

    @staticmethod
    def path(output: Path) -> Path:
        """Where it lies in the trainer's output folder."""
        return output / "outcome.json"


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
