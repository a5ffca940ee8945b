"""The filters of the replay inbox, as they stand in the URL; broken values are dropped."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta

from django.db.models import QuerySet
from django.http import QueryDict
from django.utils import timezone

from webapp.experiments.models import TaskRecord
from webapp.lib.request_values import row_id
from webapp.lib.tags import with_tag
from webapp.replay.models import ReplayEntry, Verdict

ALL = "all"
VERDICTS = (*Verdict.values, ALL)
AGES = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
"""Name in the URL -> entries that came within this time."""


@dataclass(frozen=True)
class EntryFilter:
    """What the inbox is narrowed to."""

    verdict: str = Verdict.INBOX.value
    family: str = ""
    experiment: str = ""
    """Primary key, as text."""
    age: str = ""
    tag: str = ""
    search: str = ""
    """Words of the task's instruction or id, all of them."""

    @classmethod
    def from_query(cls, query: QueryDict) -> EntryFilter:
        """Read the filters of a URL or of a posted form."""
        values = {each.name: query.get(each.name, "").strip()[:60] for each in fields(cls)}
        if values["verdict"] not in VERDICTS:
            values["verdict"] = Verdict.INBOX.value
        if values["age"] not in AGES:
            values["age"] = ""
        if row_id(values["experiment"]) is None:
            values["experiment"] = ""
        return cls(**values)

    def is_narrow(self) -> bool:
        """True when anything but the verdict is set."""
        return bool(self.family or self.experiment or self.age or self.tag or self.search)

    def apply(self, rows: QuerySet[ReplayEntry]) -> QuerySet[ReplayEntry]:
        """`rows` narrowed to this filter."""
        if self.verdict != ALL:
            rows = rows.filter(verdict=self.verdict)
        return self.apply_but_verdict(rows)

    def apply_but_verdict(self, rows: QuerySet[ReplayEntry]) -> QuerySet[ReplayEntry]:
        """Everything but the verdict: for the counts on the tabs."""
        if self.family:
            rows = rows.filter(family=self.family)
        if self.experiment:
            rows = rows.filter(trajectory__experiment_id=self.experiment)
        if self.search:
            rows = rows.filter(trajectory__task__in=TaskRecord.objects.with_words(self.search))
        if self.age:
            rows = rows.filter(created_at__gte=timezone.now() - AGES[self.age])
        if self.tag:
            rows = rows.filter(with_tag(self.tag))
        return rows
