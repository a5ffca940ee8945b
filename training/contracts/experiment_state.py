"""Where an experiment stands: the part of a checkpoint that is no tensor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, kw_only=True)
class ExperimentState:
    """Where an experiment stands; JSON beside the tensors."""

    stage: str = "start"
    """start -> sft -> grpo -> done"""
    sft_step: int = 0
    """Finished SFT steps."""
    grpo_step: int = 0
    """Finished GRPO steps."""
    policy_version: int = 0
    task_cursor: int = 0
    """First position in the task order that no finished step has used."""
    was_evaluated_before: bool = False
    was_evaluated_after: bool = False
    best_success: float = -1.0
    """Held-out success of the best checkpoint so far; -1 = none evaluated."""
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
