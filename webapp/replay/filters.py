"""The filters of the replay inbox, as they stand in the URL; broken values are dropped."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta

from django.db.models import F, Q, QuerySet
from django.http import QueryDict
from django.utils import timezone

from training.contracts.types import Source
from webapp.experiments.models import TaskRecord
from webapp.lib.request_values import BadValue, decimal_number, row_id
from webapp.lib.tags import with_tag
from webapp.replay.models import ReplayEntry, Verdict

ALL = "all"
VERDICTS = (*Verdict.values, ALL)
MAX_STILL = 3
"""Turns on one unchanged screen that look stuck."""
SORTS = {
    "newest": "Newest",
    "rarity": "Rarest task",
    "failing": "Task fails now",
    "stale": "Oldest policy",
    "shortest": "Fewest turns",
    "longest": "Most turns",
    "best": "Highest reward",
    "worst": "Lowest reward",
}
"""Name in the URL -> words; `queries.sorting` says what they mean."""
NEWEST = "newest"
PROBLEMS: dict[str, tuple[str, Q]] = {
    "still": ("Screen stands still", Q(num_still__gte=MAX_STILL)),
    "unparsed": ("Unparsable or refused turns", Q(has_bad_turns=True)),
    "unrewarded": ("Solved, but not rewarded", Q(trajectory__reward__lte=0)),
    "duplicate": ("Near-duplicate", Q(cluster__lt=F("id"))),
    "skipped": ("Training could not use it", Q(skips__isnull=False)),
}
"""Name in the URL -> (words, entries that have it)."""
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
    source: str = ""
    min_reward: str = ""
    max_reward: str = ""
    annotator: str = ""
    """Name of the account whose label stands."""
    problem: str = ""
    finding: str = ""
    """Primary key, as text, of a scanner that found something."""
    cluster: str = ""
    """Primary key, as text."""
    sort: str = NEWEST

    @classmethod
    def from_query(cls, query: QueryDict, verdict: str = Verdict.INBOX.value) -> EntryFilter:
        """Read the filters of a URL or of a posted form; `verdict` stands where none is named."""
        values = {each.name: query.get(each.name, "").strip()[:60] for each in fields(cls)}
        if values["verdict"] not in VERDICTS:
            values["verdict"] = verdict
        if values["age"] not in AGES:
            values["age"] = ""
        for name in ("experiment", "cluster", "finding"):
            if row_id(values[name]) is None:
                values[name] = ""
        for name, known in (("source", tuple(Source)), ("problem", tuple(PROBLEMS))):
            if values[name] not in known:
                values[name] = ""
        for name in ("min_reward", "max_reward"):
            if _decimal(values[name]) is None:
                values[name] = ""
        if values["sort"] not in SORTS:
            values["sort"] = NEWEST
        return cls(**values)

    @property
    def num_more(self) -> int:
        """How many of the less used filters are set."""
        more = (self.tag, self.source, self.min_reward, self.max_reward, self.annotator, self.problem)
        return sum(map(bool, (*more, self.cluster, self.finding)))

    def is_narrow(self) -> bool:
        """True when anything but the verdict and the order is set."""
        return bool(self.family or self.experiment or self.age or self.search or self.num_more)

    @property
    def by_cluster(self) -> bool:
        """Whether one row stands for near-identical entries: where they wait, unless one cluster is shown."""
        return self.verdict == Verdict.INBOX and not self.cluster

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
        return self._apply_more(rows)

    def _apply_more(self, rows: QuerySet[ReplayEntry]) -> QuerySet[ReplayEntry]:
        if self.source:
            rows = rows.filter(trajectory__source=self.source)
        if (low := _decimal(self.min_reward)) is not None:
            rows = rows.filter(trajectory__reward__gte=low)
        if (high := _decimal(self.max_reward)) is not None:
            rows = rows.filter(trajectory__reward__lte=high)
        if self.annotator:
            rows = rows.filter(labelled_by__username=self.annotator)
        if self.cluster:
            rows = rows.filter(cluster=self.cluster)
        if self.finding:
            rows = rows.filter(
                trajectory__findings__scanner=row_id(self.finding), trajectory__findings__outcome="found"
            )
        if self.problem:
            having = ReplayEntry.objects.filter(PROBLEMS[self.problem][1])
            rows = rows.filter(pk__in=having.order_by().values("pk"))
        return rows


def _decimal(text: str) -> float | None:
    try:
        return decimal_number(text, "") if text else None
    except BadValue:
        return None
