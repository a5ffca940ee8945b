"""Proving tasks by the queue: the oracle must score 1.0 and doing nothing 0.0 on a real desktop."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from training.contracts.config import DesktopConfig
from training.contracts.types import Purpose, Source
from webapp.experiments.models import TaskRecord
from webapp.trajectories.models import Group
from webapp.trajectories.services.groups import GroupSpec, create_group

MAX_OPEN_TASKS = 32
"""Tasks in flight: enough for every desktop, few enough that training is not far behind them."""
POLL_S = 0.2


class NothingHappens(RuntimeError):
    """Raised when no verification ended for a whole `stall_limit`: no env worker takes them."""


@dataclass(frozen=True)
class Verdict:
    """What one task scored; None = every try errored, or it has no oracle."""

    task: TaskRecord
    oracle_score: float | None
    idle_score: float | None
    error: str = ""

    @property
    def holds(self) -> bool:
        return self.oracle_score == 1.0 and self.idle_score == 0.0


def verify(
    tasks: Iterable[TaskRecord],
    *,
    team_id: int,
    desktops: DesktopConfig | None = None,
    stall_limit: timedelta = timedelta(seconds=60),
    on_verdict: Callable[[Verdict], None] = lambda verdict: None,
) -> list[Verdict]:
    """Queue both checks of every task on such desktops and wait for them; tasks keep their scores.

    Raises NothingHappens; what was queued then stays queued.
    """
    waiting = iter(tasks)
    open_groups: dict[int, tuple[TaskRecord, list[Group]]] = {}
    verdicts: list[Verdict] = []
    last_event = time.monotonic()
    while True:
        for task in islice(waiting, MAX_OPEN_TASKS - len(open_groups)):
            open_groups[task.pk] = (task, list(queue_checks(task, team_id, desktops)))
        if not open_groups:
            return verdicts
        for verdict in _ended(open_groups):
            del open_groups[verdict.task.pk]
            on_verdict(verdict)
            verdicts.append(verdict)
            last_event = time.monotonic()
        if time.monotonic() - last_event > stall_limit.total_seconds():
            raise NothingHappens(
                f"no task was verified for {stall_limit.total_seconds():.0f} s; are env workers running?"
            )
        time.sleep(POLL_S)


def queue_checks(
    task: TaskRecord, team_id: int, desktops: DesktopConfig | None, rounds: int = 1
) -> Iterator[Group]:
    """One group of `rounds` trajectories per check; tasks without an oracle only get the do-nothing check."""
    sources = (
        [Source.ORACLE, Source.SCRIPTED] if task.spec.get("oracle", {}).get("actions") else [Source.SCRIPTED]
    )
    for source in sources:
        request = GroupSpec(
            task=task, size=rounds, purpose=Purpose.VERIFICATION, source=source, desktops=desktops
        )
        yield create_group(request=request, team_id=team_id)


def _ended(open_groups: dict[int, tuple[TaskRecord, list[Group]]]) -> list[Verdict]:
    """Verdicts of the tasks whose groups have all ended."""
    pks = [group.pk for _, groups in open_groups.values() for group in groups]
    done = {group.pk: group for group in Group.objects.filter(pk__in=pks, finished_at__isnull=False)}
    return [
        _verdict(task, [done[group.pk] for group in groups])
        for task, groups in open_groups.values()
        if all(group.pk in done for group in groups)
    ]


def _verdict(task: TaskRecord, groups: list[Group]) -> Verdict:
    scores: dict[str, float | None] = {}
    errors: list[str] = []
    for group in groups:
        last = group.trajectories.order_by("-id")[0]
        scores[group.source] = last.score
        if last.error:
            errors.append(f"{group.source}: {last.error}")
    return Verdict(task, scores.get(Source.ORACLE), scores.get(Source.SCRIPTED), "; ".join(errors))
