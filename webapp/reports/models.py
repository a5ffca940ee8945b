"""Reports: what was true at one moment, in versions that never change, and links that show one."""

import secrets

from django.conf import settings
from django.db import models

from webapp.accounts.models import Team
from webapp.lib.columns.stored_fields import ReportedJSONField, ReportedTextField


class Report(models.Model):
    """A page of text, charts, tables and trajectories; its content is in its versions."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE)
    title = models.CharField(max_length=160)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["team", "-id"], name="report_team_newest")]

    def __str__(self) -> str:
        return f"report {self.pk}"


class ReportVersion(models.Model):
    """One state of a report. Nothing changes it: what it shows is in `content` and in its own pictures."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="versions")
    number = models.IntegerField()
    title = models.CharField(max_length=160)
    text = ReportedTextField(blank=True)
    """Markdown."""
    choices = ReportedJSONField(default=dict)
    """What to freeze (`webapp.reports.frozen_content.Choices`): where the next version starts."""
    content = ReportedJSONField(default=dict)
    """What was frozen: experiments, charts, tables, trajectories."""
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["report", "number"], name="version_once")]

    def __str__(self) -> str:
        return f"version {self.number} of {self.report_id}"


def _nonce() -> str:
    return secrets.token_urlsafe(12)


class ReportLink(models.Model):
    """Shows one version to anyone who has the link, until it expires or is revoked."""

    version = models.ForeignKey(ReportVersion, on_delete=models.CASCADE, related_name="links")
    nonce = models.CharField(max_length=24, default=_nonce)
    """Part of what is signed: a row of the same id in another database opens nothing."""
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    num_opened = models.IntegerField(default=0)
    opened_at = models.DateTimeField(null=True)
    """The last time."""

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"link {self.pk}"
