"""What the page of a task that a person makes requests of the desktop, and what was seen there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from webapp.lib.remote_calls import OwnTrajectory, env_host
from webapp.tasks_library.models import Draft
from webapp.tasks_library.models import Moment as Moment
from webapp.tasks_library.services import drafts


@dataclass(frozen=True, slots=True)
class DraftWanted:
    """What is to be done at the desktop."""

    steps: list[dict[str, Any]]
    """Of the set-up, that were not done yet."""
    is_starting: bool
    """The person has pressed "start here"."""


@env_host.patient_request
def wanted_of_draft(trajectory_id: OwnTrajectory, num_done: int) -> DraftWanted:
    draft = Draft.objects.only("steps", "is_starting").get(trajectory_id=trajectory_id)
    return DraftWanted([entry["step"] for entry in draft.steps[num_done:]], draft.is_starting)


@env_host.report
def note_draft_step(trajectory_id: OwnTrajectory, index: int, error: str) -> None:
    """A step was done; `error`: why it failed."""
    drafts.note_step(trajectory_id=trajectory_id, index=index, error=error)


@env_host.report
def note_draft_state(
    trajectory_id: OwnTrajectory, moment: Moment, state: dict[str, Any], num_turns: int
) -> None:
    """How the desktop stood after `num_turns`."""
    drafts.note_state(trajectory_id=trajectory_id, moment=moment, state=state, num_turns=num_turns)
