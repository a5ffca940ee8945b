"""A team's rule that decides over inbox entries by itself, and the entries by which people judge it."""

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models

from webapp.accounts.models import Team
from webapp.lib.columns.stored_fields import ReportedJSONField, ReportedTextField
from webapp.replay.models.entries import ReplayEntry


class AcceptanceRule(models.Model):
    """Accepts the best of each cluster in its owner's name, until people find too many of them wrong."""

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="acceptance_rule")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    min_score = models.FloatField(default=1.0)
    keep = models.IntegerField(default=3, validators=[MinValueValidator(1)])
    """Entries of each cluster that are accepted, at most; the others are near-duplicates."""
    without = ReportedJSONField(default=list)
    """Scanners, as "loops.v1", that found nothing in it."""
    audit_share = models.FloatField(default=0.05)
    """Of what it would accept, the share that people see instead."""
    max_error = models.FloatField(default=0.1)
    """Share of those that people reject above which it stops."""
    stopped = ReportedTextField(blank=True)
    """Why it does not decide any more; "" = it does."""
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"acceptance rule of {self.team}"


class RuleSample(models.Model):
    """An entry that a rule would have accepted, left in the inbox for a person to label."""

    rule = models.ForeignKey(AcceptanceRule, on_delete=models.CASCADE, related_name="samples")
    entry = models.OneToOneField(ReplayEntry, on_delete=models.CASCADE, related_name="rule_sample")

    def __str__(self) -> str:
        return f"sample {self.entry_id}"
