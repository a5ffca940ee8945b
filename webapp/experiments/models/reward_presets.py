"""Reward presets that people saved."""

from django.conf import settings
from django.db import models

from training.contracts.config import RewardConfig, RewardPreset
from webapp.accounts.models import Team


class SavedRewardPreset(models.Model):
    """One version of a team's preset. Nothing changes it; experiments carry what it says in their configs."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE)
    name = models.CharField(max_length=60)
    version = models.IntegerField()
    definition = models.JSONField()
    """`RewardPreset` as JSON."""
    alpha = models.FloatField(default=0.3)
    """What it was tried with; an experiment's own knob."""
    note = models.CharField(max_length=300, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name", "version"], name="reward_preset_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.name}.v{self.version}"

    @property
    def rewards(self) -> RewardConfig:
        """The config section of an experiment that uses it."""
        terms = RewardPreset.model_validate(self.definition)
        return RewardConfig(preset=str(self), alpha=self.alpha, definition=terms)
