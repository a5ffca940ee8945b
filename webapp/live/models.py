"""Append-only event streams: what a browser must receive, in commit order.

Invariant: within a stream, sequence numbers have no gaps and their order is the order of
commits, because the number is taken under the stream's row lock in the writing transaction.
"""

from django.db import models

from webapp.lib.columns.stored_fields import ReportedJSONField


class Stream(models.Model):
    """A named sequence, e.g. "trajectory.17"."""

    name = models.CharField(max_length=64, primary_key=True)
    last_seq = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name}@{self.last_seq}"


class Event(models.Model):
    """One message of a stream. Old ones are pruned: pages are rendered from the real tables."""

    stream = models.CharField(max_length=64)
    seq = models.BigIntegerField()
    type = models.CharField(max_length=40)
    payload = ReportedJSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["stream", "seq"], name="event_order")]

    def __str__(self) -> str:
        return f"{self.stream}#{self.seq} {self.type}"
