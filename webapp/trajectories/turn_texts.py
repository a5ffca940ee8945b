"""Columns of a turn for what was read beside its screenshot."""

from django.db import models
from django.db.models import Q

from webapp.lib.columns.stored_fields import ReportedJSONField


class TurnTexts(models.Model):
    """Most turns read nothing, and then have nothing here."""

    accessibility = models.CharField(max_length=64, null=True)
    """sha256 of its raw tree, as that of its terminal a `Frame`."""
    terminal = models.CharField(max_length=64, null=True)
    read_texts = ReportedJSONField(null=True)
    """Both as in `Observation`; null = neither was read."""

    class Meta:
        abstract = True


TEXT_INDEXES = [
    models.Index(fields=["accessibility"], name="turn_by_tree", condition=Q(accessibility__isnull=False)),
    models.Index(fields=["terminal"], name="turn_by_terminal", condition=Q(terminal__isnull=False)),
]
