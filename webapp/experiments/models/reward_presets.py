"""Reward presets that people saved."""

from django.db import models

from training.contracts.config import RewardConfig, RewardPreset
from webapp.accounts.models import Team
from webapp.accounts.named_versions import TeamVersion
from webapp.lib.columns.stored_fields import ReportedJSONField


class SavedRewardPreset(TeamVersion):
    """One version of a team's preset; experiments carry what it says in their configs."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE)
    definition = ReportedJSONField()
    """`RewardPreset` as JSON."""
    alpha = models.FloatField(default=0.3)
    """What it was tried with; an experiment's own knob."""

    class Meta(TeamVersion.Meta):
        constraints = [
            models.UniqueConstraint(fields=TeamVersion.VERSION_ONCE, name="reward_preset_version_once")
        ]

    @property
    def rewards(self) -> RewardConfig:
        """The config section of an experiment that uses it."""
        terms = RewardPreset.model_validate(self.definition)
        return RewardConfig(preset=str(self), alpha=self.alpha, definition=terms)
