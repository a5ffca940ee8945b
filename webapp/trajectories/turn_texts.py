"""Columns of a turn for what was read beside its screenshot."""

from django.db import models
from django.db.models import Q

from webapp.lib.columns.stored_fields import ReportedJSONField


class TurnTexts(models.Model):
    """Most turns read nothing, and then have nothing here."""

    accessibility = models.CharField(max_length=64, null=True)
    """sha256 of its raw tree, as that of its terminal a `Frame`."""
    terminal = models.CharField(max_length=64, null=True)
    plain = models.CharField(max_length=64, null=True)
    """sha256 of the screenshot that the marks of its picture were drawn on."""
    read_texts = ReportedJSONField(null=True)
    """Tree, terminal and marks as in `Observation`; null = none was read."""

    class Meta:
        abstract = True


TEXT_INDEXES = [
    models.Index(fields=["accessibility"], name="turn_by_tree", condition=Q(accessibility__isnull=False)),
    models.Index(fields=["terminal"], name="turn_by_terminal", condition=Q(terminal__isnull=False)),
    models.Index(fields=["plain"], name="turn_by_plain", condition=Q(plain__isnull=False)),
]
