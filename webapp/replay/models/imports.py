"""A file on its way into the buffer."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import models, transaction

from webapp.accounts.models import Team
from webapp.experiments.models import TaskSet
from webapp.lib.columns.stored_fields import ReportedCharField, ReportedJSONField
from webapp.lib.long_work import LongWork
from webapp.live.event_publishing import publish


class ImportStatus(models.TextChoices):
    QUEUED = "queued", "Queued"
    CHECKING = "checking", "Checking"
    CHECKED = "checked", "Checked"
    """A person decides whether what is new gets stored."""
    APPROVED = "approved", "Approved"
    STORING = "storing", "Storing"
    FINISHED = "finished", "Finished"
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"

    def is_final(self) -> bool:
        return self in (self.FINISHED, self.CANCELLED, self.FAILED)


S = ImportStatus
IMPORT_TRANSITIONS: dict[ImportStatus, set[ImportStatus]] = {
    S.QUEUED: {S.CHECKING, S.CANCELLED, S.FAILED},
    S.CHECKING: {S.CHECKED, S.FINISHED, S.CANCELLED, S.FAILED},
    S.CHECKED: {S.APPROVED, S.CANCELLED},
    S.APPROVED: {S.STORING, S.CANCELLED, S.FAILED},
    S.STORING: {S.FINISHED, S.CANCELLED, S.FAILED},
    S.FINISHED: set(),
    S.CANCELLED: set(),
    S.FAILED: set(),
}
"""CHECKING -> FINISHED: nothing in it is new. A process that died leaves CHECKING or STORING behind; the next
one goes on from there."""


ANEW = {"done_bytes": 0, "done_lines": 0}
UNCHECKED = {**ANEW, "num_new": 0, "num_known": 0, "num_bad": 0, "known": [], "problems": []}


class ReplayImport(LongWork):
    """A file on its way into the buffer: read once to tell what is in it, and again to store what is new."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="replay_imports")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    task_set = models.ForeignKey(TaskSet, null=True, on_delete=models.SET_NULL)
    """The one that the file's task ids belong to."""
    file_name = ReportedCharField(max_length=200)
    path = models.CharField(max_length=120, blank=True)
    """Storage name; "" once the file is gone."""
    size_bytes = models.BigIntegerField()
    keep_labels = models.BooleanField(default=False)
    takes_unknown = models.BooleanField(default=False)
    """Lines of tasks that the set does not have come in as demonstrations only."""
    status = models.CharField(max_length=9, choices=S, default=S.QUEUED, db_index=True)
    done_bytes = models.BigIntegerField(default=0)
    """Of the file, by the reading that is going on."""
    done_lines = models.IntegerField(default=0)
    num_new = models.IntegerField(default=0)
    num_known = models.IntegerField(default=0)
    num_bad = models.IntegerField(default=0)
    num_stored = models.IntegerField(default=0)
    known = ReportedJSONField(default=list)
    """The first [line, id of the entry that holds the same, 0 = an earlier line does]."""
    problems = ReportedJSONField(default=list)
    """The first [line, "field: what is wrong"]."""

    TRANSITIONS = IMPORT_TRANSITIONS
    BEGINS = {S.QUEUED: S.CHECKING, S.APPROVED: S.STORING}
    SILENT_AFTER = timedelta(seconds=60)
    """A line with many large screenshots takes seconds."""

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["team", "-id"], name="import_team_newest")]

    def __str__(self) -> str:
        return f"import {self.pk} of {self.file_name}"

    def publish(self) -> None:
        payload = {"status": self.status, "done_bytes": self.done_bytes}
        publish(f"import.{self.pk}", "import.changed", payload)

    def values_at_start(self) -> dict[str, Any]:
        """A check begins anew after a death; what stores goes on behind its last batch."""
        if self.status == S.STORING:
            return {}
        return ANEW if self.status == S.APPROVED else UNCHECKED

    def advice(self, num_lost: int) -> str:
        many = f"{num_lost} processes died near line {self.done_lines + 1}; split the file."
        return many if num_lost > 1 else ""

    def end(self, to: str, message: str = "", *, by_its_process: bool = True, **values: Any) -> bool:
        """Its file goes with it."""
        path = self.path
        with transaction.atomic():
            ended = super().end(to, message, by_its_process=by_its_process, path="", **values)
            if ended and path:
                transaction.on_commit(lambda: default_storage.delete(path))
        return ended

    @property
    def percent(self) -> float:
        return 100 * self.done_bytes / self.size_bytes if self.size_bytes else 0.0
