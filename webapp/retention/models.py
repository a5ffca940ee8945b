"""What a team keeps: one rule for all its experiments, and others for single ones."""

from django.db import models

from webapp.accounts.models import Team
from webapp.experiments.models import Experiment


class RetentionRule(models.Model):
    """How old and how large the recorded trajectories of a team, or of one of its experiments, may get."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="retention_rules")
    experiment = models.OneToOneField(
        Experiment, null=True, on_delete=models.CASCADE, related_name="retention_rule"
    )
    """null = all experiments without a rule of their own, and what ran outside of any."""
    max_age_days = models.PositiveIntegerField(null=True)
    """Days after its end after which a trajectory goes; null = none does for its age."""
    max_bytes = models.BigIntegerField(null=True)
    """Of screenshots; above it the oldest go. null = without limit."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team"], condition=models.Q(experiment=None), name="one_rule_for_the_rest"
            )
        ]

    def __str__(self) -> str:
        return f"{self.experiment or self.team}"
