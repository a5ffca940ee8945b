"""How a trainer ends: its exit codes, and what it writes down about them."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

from pydantic import BaseModel, computed_field

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


PLANNED = {ExitCode.FINISHED, ExitCode.PAUSED, ExitCode.CANCELLED}


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
