"""Tasks that people make at a desktop, until they are saved as tasks."""

from typing import Literal

from django.db import models

from webapp.lib.columns.stored_fields import ReportedJSONField
from webapp.trajectories.models import Trajectory

Moment = Literal["clean", "start", "end"]


class Draft(models.Model):
    """What a person arranged and did at the desktop of a trajectory, from which a task is proposed."""

    trajectory = models.OneToOneField(Trajectory, on_delete=models.CASCADE, related_name="draft")
    steps = ReportedJSONField(default=list)
    """[{step: a set-up step that the page requested, is_done, error}]"""
    is_starting = models.BooleanField(default=False)
    """The person said that the task begins here; `start` follows when their action is over."""
    clean = ReportedJSONField(null=True)
    """States of the desktop (workers/tasks/desktop_state.py): before the person came,"""
    start = ReportedJSONField(null=True)
    end = ReportedJSONField(null=True)
    start_turn = models.IntegerField(null=True)
    """Index of the first turn that belongs to the task."""
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"task made in trajectory {self.trajectory_id}"
