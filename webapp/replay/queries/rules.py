"""The rules of an admission policy, and which entries they let in."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from django.db.models import Avg
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from training.contracts.plain_errors import in_plain_words
from webapp.accounts.models import Team
from webapp.lib.request_values import BadValue, shortened
from webapp.replay.models import USABLE_VERDICTS, ReplayEntry, ReplayUseRecord, Verdict
from webapp.replay.queries.sorting import COLUMNS, Facts, Surroundings

SCANNER = re.compile(r"[a-z0-9][a-z0-9-]{0,59}\.v[0-9]{1,6}")


class Rules(BaseModel):
    """What an entry has to meet; None = no such rule. Only accepted and gold ones without bad turns enter."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    only_gold: bool = False
    max_per_task: int | None = Field(default=None, ge=1, le=10_000)
    max_per_cluster: int | None = Field(default=None, ge=1, le=10_000)
    max_age: int | None = Field(default=None, ge=0, le=1_000_000)
    """Policy versions up to the target experiment's; an unknown age, as of a person's, passes."""
    min_ratio: float | None = Field(default=None, ge=0, le=100, allow_inf_nan=False)
    """Mean importance ratio of its uses so far; an entry that was not measured passes."""
    min_reward: float | None = Field(default=None, ge=-1e6, le=1e6, allow_inf_nan=False)
    without: tuple[str, ...] = Field(default=(), max_length=20)
    """Scanners, as "loops.v1", that found nothing in it; what they have not read passes."""

    @field_validator("without")
    @classmethod
    def _scanner_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not SCANNER.fullmatch(name):
                raise ValueError(f"{shortened(name)!r} names no scanner; write it as loops.v1")
        return tuple(dict.fromkeys(names))

    @classmethod
    def read(cls, values: object) -> Rules:
        """Raises BadValue, which names the rule."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            raise BadValue(
                ".".join(map(str, first["loc"])) or "rules", in_plain_words(first["msg"])
            ) from error

    def words(self) -> str:
        parts = ["only gold"] if self.only_gold else []
        limits = (
            ("at most", self.max_per_task, "per task"),
            ("at most", self.max_per_cluster, "per cluster"),
            ("policy at most", self.max_age, "versions old"),
            ("ratio from", self.min_ratio, ""),
            ("reward from", self.min_reward, ""),
        )
        parts += [f"{start} {value:g} {end}".strip() for start, value, end in limits if value is not None]
        parts += [f"nothing found by {name}" for name in self.without]
        return ", ".join(parts) or "everything accepted or gold"


@dataclass(slots=True)
class Admission:
    """What rules make of a buffer."""

    num_entries: int
    """Of the whole buffer."""
    entering: list[Facts] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """Reason -> entries."""
    ratios: dict[int, float] = field(default_factory=dict)
    """Entry -> mean importance ratio of its uses, where one was measured."""

    @property
    def tasks(self) -> set[int]:
        return {facts.task_id for facts in self.entering}


def admit(team: Team, rules: Rules, around: Surroundings) -> Admission:
    """Apply the rules to the buffer as it is. Of too many for a task or cluster, the best enter.

    Best: gold, seldom used, the higher reward, the newer. Two queries, and one for scanners.
    """
    rows = ReplayEntry.objects.filter(team=team).exclude(trajectory__experiment__is_sample=True).order_by()
    known = rows.values_list(*COLUMNS, "verdict", "num_uses", "cluster")
    ratios = mean_ratios(team)
    flagged = flagged_entries(team, rules.without) if rules.without else {}
    found = Admission(num_entries=0, ratios=ratios)
    waiting = []
    for *columns, verdict, num_uses, cluster in known:
        facts = Facts(*columns)
        found.num_entries += 1
        reason = _refusal(facts, verdict, rules, around, ratios) or flagged.get(facts.pk)
        if reason is not None:
            found.left_out[reason] += 1
            continue
        order = (verdict != Verdict.GOLD, num_uses, -(facts.reward or 0.0), -facts.pk)
        waiting.append((order, facts, cluster))
    _fill(found, sorted(waiting), rules)
    return found


def _refusal(
    facts: Facts, verdict: str, rules: Rules, around: Surroundings, ratios: dict[int, float]
) -> str | None:
    if verdict not in USABLE_VERDICTS:
        return "rejected" if verdict == Verdict.REJECTED else "waits in the inbox"
    if facts.has_bad_turns:
        return "unparsable or refused turns: trim it"
    if rules.only_gold and verdict != Verdict.GOLD:
        return "not gold"
    if rules.min_reward is not None and (facts.reward or 0.0) < rules.min_reward:
        return "reward too low"
    if rules.max_age is not None and (around.age(facts) or 0) > rules.max_age:
        return "policy too old"
    if rules.min_ratio is not None and ratios.get(facts.pk, rules.min_ratio) < rules.min_ratio:
        return "ratio too low"
    return None


def _fill(found: Admission, ordered: list[tuple[object, Facts, int | None]], rules: Rules) -> None:
    per_task: Counter[int] = Counter()
    per_cluster: Counter[int] = Counter()
    for _, facts, cluster in ordered:
        if rules.max_per_task is not None and per_task[facts.task_id] >= rules.max_per_task:
            found.left_out["enough of its task"] += 1
            continue
        is_known = cluster is not None and rules.max_per_cluster is not None
        if is_known and per_cluster[cluster or 0] >= (rules.max_per_cluster or 0):
            found.left_out["enough of its cluster"] += 1
            continue
        per_task[facts.task_id] += 1
        per_cluster[cluster or 0] += 1
        found.entering.append(facts)


def flagged_entries(team: Team, names: tuple[str, ...]) -> dict[int, str]:
    """Entry -> why it stays out, of those in which one of these scanners found something."""
    wanted = [row.pk for row in team.scanners.all() if str(row) in names]
    rows = ReplayEntry.objects.filter(
        team=team, trajectory__findings__scanner__in=wanted, trajectory__findings__outcome="found"
    )
    columns = ("pk", "trajectory__findings__scanner__name", "trajectory__findings__scanner__version")
    return {pk: f"found by {name}.v{version}" for pk, name, version in rows.values_list(*columns)}


def mean_ratios(team: Team) -> dict[int, float]:
    """Entry -> mean importance ratio over its uses as it was sampled."""
    uses = ReplayUseRecord.objects.filter(entry__team=team, importance_ratio__isnull=False)
    return dict(uses.order_by().values_list("entry_id").annotate(mean=Avg("importance_ratio")))
