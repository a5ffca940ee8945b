"""Turns as they are reported: with the screenshot that the agent or a person saw, and the texts beside it."""

from datetime import UTC, datetime

from training.contracts.config import ExperimentConfig, PromptConfig
from training.contracts.observed_text import Marks
from training.contracts.types import Observation, Source
from training.observations.marks import MarkedPicture, draw_marks
from training.observations.turn_text import RawTexts, turn_text
from training.observations.widget_tree import BadTree
from webapp.worker_door.assignments import Assignment
from webapp.worker_door.trajectories import open_turn
from workers.desktops.desktop_texts import Reads
from workers.desktops.frame import Frame
from workers.reports.current import reports


def texts_of(prompt: PromptConfig) -> Reads:
    """What is read of a desktop for such a policy."""
    return Reads(tree=prompt.reads_tree or prompt.reads_marks, terminal=prompt.reads_terminal)


def begin_turn(
    assignment: Assignment, index: int, frame: Frame, message: str, source: Source | None = None
) -> tuple[Observation, bytes]:
    """Report the screenshot and the turn that shows it; `message` is the instruction or the last result.

    Answers what the policy reads, and the PNG that it sees.
    """
    row, source = assignment.row, source or assignment.source
    shown, marked = _with_marks(frame, assignment.config.prompt, index)
    observation = _observation(index, shown, message, assignment.config, marked)
    observed_at = datetime.fromtimestamp(frame.taken_at, tz=UTC)
    reports().report_with_screen(
        row.team_id, shown, open_turn, row.pk, index, source, observation, observed_at
    )
    return observation, shown.png


def _with_marks(frame: Frame, prompt: PromptConfig, index: int) -> tuple[Frame, MarkedPicture | None]:
    """The frame with numbered boxes where the turn shows them; plain where the tree could not be read."""
    tree = frame.texts.tree
    if not prompt.reads_marks or not prompt.shows_texts_at(index) or tree is None or tree.text is None:
        return frame, None
    try:
        marked = draw_marks(frame.image(), tree.text)
    except BadTree:
        return frame, None
    return frame.drawn(marked.picture), marked


def _observation(
    index: int, frame: Frame, message: str, config: ExperimentConfig, marked: MarkedPicture | None
) -> Observation:
    tree, terminal, size = frame.texts.tree, frame.texts.terminal, (frame.width, frame.height)
    if tree is None and terminal is None:
        return Observation(sha256=frame.sha256, width=size[0], height=size[1], text=message)
    read = RawTexts(
        tree=tree.text if tree else None,
        terminal=terminal.text if terminal else None,
        marks=marked.listed if marked else None,
    )
    plain = frame.plain.sha256 if frame.plain else ""
    return Observation(
        sha256=frame.sha256,
        width=size[0],
        height=size[1],
        text=turn_text(message, read, index, config.prompt, config.model, size),
        accessibility=tree.observed if tree else None,
        terminal=terminal.observed if terminal else None,
        marks=Marks(plain=plain, boxes=marked.boxes) if marked else None,
    )
