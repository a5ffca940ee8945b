"""Costs of experiments, from recorded facts only: what was not recorded is unknown, never guessed.

GPU-hours are attempts' time times the GPUs that they held, busy or not; desktop-hours the time from a
trajectory's claim to its end, errored ones too; tokens those that turns were generated from and of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from django.db.models import Count, Q, Sum
from django.utils import timezone

from training.contracts.types import Source
from webapp.experiments.models import Attempt, Experiment, GpuSample, TeamPrices
from webapp.experiments.queries.outcomes import solved_by_agent
from webapp.lib.time_sql_functions import EpochSeconds

HOUR = timedelta(hours=1)
ACCEPTED = ("accepted", "gold")
"""Verdicts of replay entries that people accepted."""
MAX_SAMPLES = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one or several experiments took; None = not recorded."""

    prices: TeamPrices
    worker_hours: float = 0.0
    """Time of attempts, whatever they ran on."""
    gpu_hours: float | None = 0.0
    desktop_hours: float = 0.0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    num_solved: int = 0
    """Trajectories of the policy that solved their task."""
    num_accepted: int = 0
    """Entries of the replay buffer that people accepted."""
    num_trajectories: int = 0

    @property
    def parts(self) -> list[tuple[str, float | int | None, float]]:
        """(what, quantity in the price's unit, price) of everything that has a price."""
        return [
            ("GPU-hours", self.gpu_hours, self.prices.gpu_hour),
            ("Desktop-hours", self.desktop_hours, self.prices.desktop_hour),
            ("Million prompt tokens", _millions(self.prompt_tokens), self.prices.million_prompt_tokens),
            (
                "Million generated tokens",
                _millions(self.completion_tokens),
                self.prices.million_completion_tokens,
            ),
        ]

    @property
    def money(self) -> float | None:
        """At the team's prices; None when something that has a price was not recorded, or nothing has one."""
        priced = [(quantity, price) for _, quantity, price in self.parts if price]
        if not priced or any(quantity is None for quantity, _ in priced):
            return None
        return sum((quantity or 0) * price for quantity, price in priced)

    @property
    def unknown(self) -> list[str]:
        """What has a price and was not recorded."""
        return [name for name, quantity, price in self.parts if price and quantity is None]

    def per(self, number: int) -> Cost | None:
        """The share of one of `number`; None without any."""
        if not number:
            return None
        share: dict[str, Any] = {
            name: None if (value := getattr(self, name)) is None else value / number
            for name in ("worker_hours", "gpu_hours", "desktop_hours", "prompt_tokens", "completion_tokens")
        }
        return Cost(prices=self.prices, **share)

    @property
    def per_solved(self) -> Cost | None:
        return self.per(self.num_solved)

    @property
    def per_accepted(self) -> Cost | None:
        return self.per(self.num_accepted)


def _millions(tokens: int | None) -> float | None:
    return None if tokens is None else tokens / 1e6


def costs_of(prices: TeamPrices, experiment_ids: Collection[int]) -> dict[int, Cost]:
    """experiment id -> its cost; two queries."""
    times = attempt_times(experiment_ids)
    rows = _trajectory_sums(experiment_ids)
    return {
        pk: Cost(
            prices=prices,
            worker_hours=times[pk].worker_hours,
            gpu_hours=times[pk].gpu_hours,
            **rows.get(pk, {}),
        )
        for pk in experiment_ids
    }


def total_of(prices: TeamPrices, costs: Sequence[Cost]) -> Cost:
    """Of all together; what is unknown of one is unknown of all."""

    def total(name: str) -> Any:
        values = [getattr(cost, name) for cost in costs]
        return None if None in values else sum(values)

    names = [name for name in Cost.__dataclass_fields__ if name != "prices"]
    return Cost(prices=prices, **{name: total(name) for name in names})


@dataclass(slots=True)
class AttemptTimes:
    """Hours of an experiment's attempts."""

    worker_hours: float = 0.0
    gpu_hours: float | None = 0.0
    """None when the GPUs of an attempt were not recorded."""


def attempt_times(experiment_ids: Collection[int]) -> dict[int, AttemptTimes]:
    """experiment id -> hours of its attempts, those that run until now; one query."""
    found: dict[int, AttemptTimes] = defaultdict(AttemptTimes)
    rows = Attempt.objects.filter(experiment_id__in=experiment_ids)
    columns = ("experiment_id", "started_at", "ended_at", "num_gpus")
    for pk, started_at, ended_at, num_gpus in rows.values_list(*columns):
        hours = _hours(started_at, ended_at)
        times = found[pk]
        times.worker_hours += hours
        if num_gpus is None or times.gpu_hours is None:
            times.gpu_hours = None
        else:
            times.gpu_hours += hours * num_gpus
    return found


def _hours(start: datetime, end: datetime | None) -> float:
    return ((end or timezone.now()) - start) / HOUR


def _trajectory_sums(experiment_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """experiment id -> what its trajectories add to the cost."""
    took = EpochSeconds("trajectories__ended_at") - EpochSeconds("trajectories__started_at")
    by_policy = Q(trajectories__source=Source.POLICY)
    uncounted = by_policy & Q(trajectories__num_turns__gt=0, trajectories__num_completion_tokens=None)
    rows = Experiment.objects.filter(pk__in=experiment_ids).order_by()
    # A set of ids, not joined: a trajectory with entries of two parts would count twice in the sums.
    with_entry = rows.filter(trajectories__replay_entries__verdict__in=ACCEPTED).values("trajectories")
    sums = rows.values("pk").annotate(
        took=Sum(took),
        prompt=Sum("trajectories__num_prompt_tokens"),
        completion=Sum("trajectories__num_completion_tokens"),
        uncounted=Count("trajectories", filter=uncounted),
        solved=Count("trajectories", filter=by_policy & solved_by_agent("trajectories__")),
        accepted=Count("trajectories", filter=Q(trajectories__in=with_entry)),
        number=Count("trajectories"),
    )
    return {
        row["pk"]: {
            "desktop_hours": (row["took"] or 0.0) / HOUR.total_seconds(),
            "prompt_tokens": None if row["uncounted"] else row["prompt"] or 0,
            "completion_tokens": None if row["uncounted"] else row["completion"] or 0,
            "num_solved": row["solved"],
            "num_accepted": row["accepted"],
            "num_trajectories": row["number"],
        }
        for row in sums
    }


@dataclass(frozen=True, slots=True)
class Usage:
    """Shares of time, 0..1, in which what an experiment held was used; None = not recorded."""

    gpus: float | None
    """Mean utilisation of the host's GPUs at the newest looks."""
    desktops: float | None
    """Time of trajectories, of the time in which its desktops could have run some."""


def usage_of(experiment: Experiment, cost: Cost) -> Usage:
    looks = GpuSample.objects.filter(experiment=experiment).order_by("-at").values_list("gpus", flat=True)
    utilisations = [gpu["utilisation"] for gpus in looks[:MAX_SAMPLES] for gpu in gpus]
    available = cost.worker_hours * experiment.settings.desktops.num_desktops
    return Usage(
        gpus=fmean(utilisations) if utilisations else None,
        desktops=min(1.0, cost.desktop_hours / available) if available else None,
    )
