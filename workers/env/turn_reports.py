"""Turns as they are reported: with the screenshot that the agent or a person saw, and the texts beside it."""

from __future__ import annotations

from datetime import UTC, datetime

from training.contracts.config import ExperimentConfig, PromptConfig
from training.contracts.types import Observation, Source
from training.observations.turn_text import RawTexts, turn_text
from webapp.worker_door.assignments import Assignment
from webapp.worker_door.trajectories import open_turn
from workers.desktops.desktop_texts import Reads
from workers.desktops.frame import Frame
from workers.reports.current import reports


def texts_of(prompt: PromptConfig) -> Reads:
    """What is read of a desktop for such a policy."""
    return Reads(tree=prompt.reads_tree, terminal=prompt.reads_terminal)


def begin_turn(
    assignment: Assignment, index: int, frame: Frame, message: str, source: Source | None = None
) -> Observation:
    """Report the screenshot and the turn that shows it; `message` is the instruction or the last result."""
    row, source = assignment.row, source or assignment.source
    observation = _observation(index, frame, message, assignment.config)
    observed_at = datetime.fromtimestamp(frame.taken_at, tz=UTC)
    reports().report_with_screen(
        row.team_id, frame, open_turn, row.pk, index, source, observation, observed_at
    )
    return observation


def _observation(index: int, frame: Frame, message: str, config: ExperimentConfig) -> Observation:
    tree, terminal, size = frame.texts.tree, frame.texts.terminal, (frame.width, frame.height)
    if tree is None and terminal is None:
        return Observation(sha256=frame.sha256, width=size[0], height=size[1], text=message)
    read = RawTexts(tree=tree.text if tree else None, terminal=terminal.text if terminal else None)
    return Observation(
        sha256=frame.sha256,
        width=size[0],
        height=size[1],
        text=turn_text(message, read, index, config.prompt, config.model, size),
        accessibility=tree.observed if tree else None,
        terminal=terminal.observed if terminal else None,
    )
