"""What people, or programs, said of single turns."""

from django.conf import settings
from django.db import models

from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField
from webapp.trajectories.models import Trajectory


class ProcessLabel(models.Model):
    """One person's ratings of the turns of a trajectory; of an import, one program's."""

    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="process_labels")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="process_labels")
    origin = ReportedCharField(max_length=40, blank=True)
    """What made an imported one; "" = the person, here."""
    ratings = ReportedJSONField(default=dict)
    """{index of the turn as text: 1 good, -1 bad}"""
    first_wrong = models.IntegerField(null=True)
    """Index of the first turn that was wrong; null = none was marked."""
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["trajectory", "by", "origin"], name="process_label_once")
        ]

    def __str__(self) -> str:
        return f"turns of trajectory {self.trajectory_id} by {self.by_id}"
