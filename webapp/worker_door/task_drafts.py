"""What the page of a task that a person makes requests of the desktop, and what was seen there."""

from dataclasses import dataclass
from typing import Any

from webapp.lib.remote_calls import OwnTrajectory, env_host
from webapp.tasks_library.models import Draft
from webapp.tasks_library.models import Moment as Moment
from webapp.tasks_library.services.drafts import note_draft_state as note_draft_state
from webapp.tasks_library.services.drafts import note_draft_step as note_draft_step


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
