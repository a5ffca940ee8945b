"""How a version of a task stands: attacked how often, exploitable or not, and whether a patch counts."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from django.db.models import Count, F, OuterRef, Subquery

from training.contracts.types import Purpose, TrajectoryStatus
from webapp.attacks.models import OPEN, Exploit, ModelAttack, RunKind, ScriptedRun
from webapp.attacks.services.scripted_runs import PAID, exploits_of, is_paid
from webapp.experiments.models import TaskRecord
from webapp.trajectories.models import Trajectory

NUM_ASKED = 3
NEWEST = 200
"""Runs of a version that are looked at."""


class Result(StrEnum):
    """Of one scripted run."""

    RUNNING = "running"
    RIGHT = "right"
    """An attack was not paid; a success was."""
    WRONG = "wrong"
    ERRORED = "errored"
    MOOT = "moot"
    """Of a fork whose state was paid for as it was: the turns before it had done the task."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A scripted run with its newest try."""

    run: ScriptedRun
    trajectory: Trajectory
    result: Result


@dataclass(frozen=True, slots=True)
class Badge:
    """Of a task in lists."""

    num_runs: int
    """Attacks of all versions."""
    num_exploits: int
    """Known ones that the version is not proven to refuse."""
    last_found: datetime | None


@dataclass(slots=True)
class Standing:
    """Of one version, by the team's runs."""

    attacks: list[Shown] = field(default_factory=list)
    exploits: list[tuple[Exploit, Shown | None]] = field(default_factory=list)
    """Every known one, with its newest run on this version."""
    successes: list[Shown] = field(default_factory=list)
    num_running: int = 0
    asked: list[ModelAttack] = field(default_factory=list)
    """Models that were asked for attacks, the newest first."""

    @property
    def open_exploits(self) -> list[Exploit]:
        """Neither dismissed nor proven dead here."""
        return [
            exploit
            for exploit, shown in self.exploits
            if not exploit.dismissed_why and (shown is None or shown.result is not Result.RIGHT)
        ]

    @property
    def broken_successes(self) -> list[Shown]:
        return [shown for shown in self.successes if shown.result is not Result.RIGHT]

    @property
    def counts(self) -> bool:
        """As a patch: every exploit is dead here, and every recorded success that was done again passes."""
        return bool(self.successes) and not self.open_exploits and not self.broken_successes


def _moot_forks(rows: Iterable[Trajectory]) -> set[int]:
    """Groups from a turn on whose first place, which does nothing, was paid."""
    return {
        row.group_id for row in rows if not row.member and row.group.branch_turn is not None and is_paid(row)
    }


def result_of(kind: str, row: Trajectory) -> Result:
    """What a try says."""
    if not row.is_final:
        return Result.RUNNING
    if not TrajectoryStatus(row.status).is_scored():
        return Result.ERRORED
    return Result.RIGHT if is_paid(row) is (kind == RunKind.SUCCESS) else Result.WRONG


def standing_of(task: TaskRecord, team_id: int) -> Standing:
    """Four queries."""
    rows = Trajectory.objects.filter(team_id=team_id, task=task, purpose=Purpose.ATTACK)
    newest = list(rows.select_related("group").order_by("-pk")[:NEWEST])
    moot = _moot_forks(newest)
    tries: dict[tuple[int, int], Trajectory] = {}
    for row in newest:
        tries.setdefault((row.group_id, row.member), row)
    runs = ScriptedRun.objects.filter(group__in={row.group_id for row in newest}).order_by(
        "-group_id", "member"
    )
    found = Standing(num_running=sum(not row.is_final for row in newest))
    of_exploits: dict[int, Shown] = {}
    of_successes: dict[int, Shown] = {}
    names: set[str] = set()
    for run in runs:
        newest_try = tries.get((run.group_id, run.member))
        if newest_try is None:
            continue
        result = Result.MOOT if run.group_id in moot else result_of(run.kind, newest_try)
        shown = Shown(run, newest_try, result)
        if run.kind == RunKind.EXPLOIT and run.exploit_id:
            of_exploits.setdefault(run.exploit_id, shown)
        elif run.kind == RunKind.SUCCESS and run.success_id:
            of_successes.setdefault(run.success_id, shown)
        elif run.kind == RunKind.ATTACK and run.name not in names:
            names.add(run.name)
            found.attacks.append(shown)
    found.exploits = [(exploit, of_exploits.get(exploit.pk)) for exploit in exploits_of(task, team_id)]
    found.successes = list(of_successes.values())
    found.asked = list(ModelAttack.objects.filter(team_id=team_id, task=task)[:NUM_ASKED])
    found.num_running += sum(one.status in OPEN for one in found.asked)
    return found


def badges_of(team_id: int, tasks: Iterable[TaskRecord]) -> dict[int, Badge]:
    """Task -> badge of those that were attacked, in any version; two queries for any number of them."""
    shown = {(task.task_set_id, task.task_id): task for task in tasks}
    sets, ids = {key[0] for key in shown}, {key[1] for key in shown}
    attacks = ScriptedRun.objects.filter(kind=RunKind.ATTACK, group__team=team_id)
    attacks = attacks.filter(group__task__task_set__in=sets, group__task__task_id__in=ids).order_by()
    key = ("group__task__task_set_id", "group__task__task_id")
    counts = {(one, two): num for one, two, num in attacks.values_list(*key).annotate(num=Count("id"))}
    if not counts:
        return {}
    exploits = Exploit.objects.filter(team=team_id, task__task_set__in=sets, task__task_id__in=ids)
    exploits = exploits.filter(dismissed_why="").select_related("task")
    checks = Trajectory.objects.filter(
        team_id=team_id, task__in=[task.pk for task in shown.values()], purpose=Purpose.ATTACK,
        task__task_set=OuterRef("task__task_set"), task__task_id=OuterRef("task__task_id"),
        score__isnull=False, group__scripted_runs__member=F("member"),
        group__scripted_runs__exploit=OuterRef("pk"),
    )  # fmt: skip
    exploits = exploits.annotate(last_check=Subquery(checks.order_by("-pk").values("score")[:1]))
    known: dict[tuple[int, str], list[Exploit]] = defaultdict(list)
    for exploit in exploits:
        known[exploit.task.task_set_id, exploit.task.task_id].append(exploit)
    found = {}
    for place, task in shown.items():
        mine = known[place]
        if num := counts.get(place, 0):
            open_ones = [one for one in mine if _is_open(one)]
            last = max((one.found_at for one in mine), default=None)
            found[task.pk] = Badge(num, len(open_ones), last)
    return found


def _is_open(exploit: Exploit) -> bool:
    """Not proven dead by its last check on the version that is shown."""
    score: float | None = exploit.last_check  # type: ignore[attr-defined]
    return score is None or score >= PAID
