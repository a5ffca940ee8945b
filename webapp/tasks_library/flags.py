"""What is wrong with a task, or says nothing: found in what is stored."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Max, Min, QuerySet

from training.contracts.outcome import SOLVED_SCORE
from training.contracts.types import Purpose, Source
from webapp.experiments.models import TaskRecord
from webapp.experiments.queries.outcomes import solved_at_limit, solved_by_agent
from webapp.trajectories.models import Trajectory

MIN_TRIES = 8
"""Fewer say neither always nor never."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A word for lists and the reason."""

    name: str
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class Tries:
    """Scored trajectories of the team's policies, or of the oracle, on one task."""

    num: int = 0
    num_solved: int = 0
    """The agent ended them."""
    num_at_limit: int = 0
    """Of the others, those that reached the state and went on until a limit."""

    @property
    def rate(self) -> float | None:
        return self.num_solved / self.num if self.num else None

    @property
    def num_reached(self) -> int:
        """With a full score, whatever ended them: what says of a task that it can be done."""
        return self.num_solved + self.num_at_limit


NO_TRIES = Tries()


def scored(team_id: int) -> QuerySet[Trajectory]:
    """What counts for a task: scored trajectories of the team, of any source; no attacks."""
    rows = Trajectory.objects.filter(team_id=team_id, score__isnull=False)
    return rows.exclude(purpose=Purpose.ATTACK)


def tries_by_source(team_id: int, tasks: Iterable[int]) -> dict[str, dict[int, Tries]]:
    """Policy and oracle -> task -> its tries; tasks without any are left out. One query."""
    rows = scored(team_id).filter(task_id__in=list(tasks), source__in=(Source.POLICY, Source.ORACLE))
    counted = (
        rows.order_by()
        .values_list("source", "task_id")
        .annotate(
            num=Count("pk"),
            num_solved=Count("pk", filter=solved_by_agent()),
            num_at_limit=Count("pk", filter=solved_at_limit()),
        )
    )
    found: dict[str, dict[int, Tries]] = {Source.POLICY: {}, Source.ORACLE: {}}
    for source, pk, *numbers in counted:
        found[source][pk] = Tries(*numbers)
    return found


def tries_of(team_id: int, tasks: Iterable[int]) -> dict[int, Tries]:
    """Task -> tries of policies; those without any are left out."""
    return tries_by_source(team_id, tasks)[Source.POLICY]


def flaky_screens(team_id: int, tasks: Iterable[int]) -> dict[int, list[str]]:
    """Task -> final screens that were scored differently."""
    rows = scored(team_id).filter(task_id__in=list(tasks)).exclude(final_frame="")
    by_screen = rows.order_by().values_list("task_id", "final_frame")
    scored_twice = by_screen.annotate(low=Min("score"), high=Max("score")).filter(high__gt=F("low"))
    found = defaultdict(list)
    for task_id, frame, _, _ in scored_twice:
        found[task_id].append(frame)
    return dict(found)


def flags_of(
    task: TaskRecord,
    tries: Tries,
    screens: list[str],
    leaks: list[int],
    *,
    num_replay: int | None = None,
    oracle: Tries = NO_TRIES,
) -> list[Flag]:
    """All that is to be said of one task, the worst first."""
    found = []
    if leaks:
        text = f"{len(leaks)} train tasks have the same instruction, set-up and evaluator"
        found.append(Flag("Leaked", "bad", text))
    if screens:
        text = f"{len(screens)} final screens were scored differently"
        found.append(Flag("Flaky", "bad", text))
    if 0 < oracle.num_reached < oracle.num:
        text = f"the oracle scored 1 in {oracle.num_reached} of {oracle.num} runs"
        found.append(Flag("Flaky oracle", "bad", text))
    elif task.oracle_score is not None and task.oracle_score < SOLVED_SCORE:
        found.append(Flag("Oracle fails", "bad", f"the oracle scored {task.oracle_score:g}"))
    if task.idle_score:
        found.append(Flag("Free", "bad", f"doing nothing scored {task.idle_score:g}"))
    if tries.num >= MIN_TRIES and tries.num_reached == 0:
        found.append(Flag("Never solved", "warning", f"0 of {tries.num} tries"))
    if tries.num >= MIN_TRIES and tries.num_solved == tries.num:
        found.append(Flag("Always solved", "warning", f"all of {tries.num} tries"))
    if num_replay == 0 and task.split == "train":
        found.append(Flag("No replay", "neutral", "no accepted or gold entry helps when a whole group fails"))
    return found


def as_text(value: Any) -> str:
    """A part of a task's JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False)
