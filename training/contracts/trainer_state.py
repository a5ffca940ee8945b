"""Where an experiment stands: the part of a checkpoint that is no tensor."""

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from training.contracts.stage_names import StageName

COMPLETE = "COMPLETE"
"""File of a checkpoint's folder that is written last: without it the folder is none."""


def checkpoints_folder(directory: str, output: Path) -> Path:
    """Where a trainer with this `checkpoints.directory` and output folder keeps its checkpoints."""
    return (Path(directory) / output.name if directory else output) / "checkpoints"


class LearningStage(StrEnum):
    """Which of the stages that change weights a checkpoint stands in."""

    START = "start"
    """Before the first of them."""
    SFT = StageName.SFT.value
    GRPO = StageName.GRPO.value


LEARNING_TRANSITIONS: dict[LearningStage, set[LearningStage]] = {
    LearningStage.START: {LearningStage.SFT, LearningStage.GRPO},
    LearningStage.SFT: {LearningStage.GRPO},
    LearningStage.GRPO: set(),
}


@dataclass(slots=True, kw_only=True)
class ExperimentState:
    """Where an experiment stands; JSON beside the tensors."""

    stage: LearningStage = LearningStage.START
    sft_step: int = 0
    """Finished SFT steps."""
    grpo_step: int = 0
    """Finished GRPO steps."""
    policy_version: int = 0
    task_cursor: int = 0
    """First position in the task order that no finished step has used."""
    used_ahead: list[int] = field(default_factory=list)
    """Positions behind it that finished steps have used all the same: for groups in place of flat ones."""
    was_evaluated_before: bool = False
    was_evaluated_after: bool = False
    best_success: float = -1.0
    """Share of held-out tasks that the best checkpoint so far solves and ends; -1 = none evaluated."""
    best_partial: float = 0.0
    """Its mean of partial scores, full ones counted as 0."""
    best_checkpoint: str = ""
    """Its folder name."""
    num_saved: int = 0
    """Checkpoints written so far; numbers their folders."""
    rate_scale: float = 1.0
    """Learning rates are multiplied with it; falls at each roll-back."""
    rolled_back_to: list[str] = field(default_factory=list)
    """Checkpoints that were gone back to."""
    rolled_back_saves: list[str] = field(default_factory=list)
    """Checkpoints saved right after: the same weights under another name."""
    solve_rates: dict[str, list[float]] = field(default_factory=dict)
    """task_id -> faded [wins, trials]."""
    replay: dict[str, int] = field(default_factory=dict)
    alarms: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stage = LearningStage(self.stage)

    def enter(self, stage: LearningStage) -> None:
        """Go on to a stage. Raises ValueError when it does not follow."""
        if stage not in LEARNING_TRANSITIONS[self.stage]:
            raise ValueError(f"stage {stage} does not follow {self.stage}")
        self.stage = stage

    @property
    def stage_step(self) -> int:
        """Finished steps of the stage."""
        return self.sft_step if self.stage is LearningStage.SFT else self.grpo_step
