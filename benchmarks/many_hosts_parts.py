"""What the benchmark of many hosts asks of the server: its database; places that are run to their end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from testing.watch_installation import wait_for
from training.contracts.types import Purpose, Source, TrajectoryStatus

WORKERS_WITHIN_S = 1500.0
LIMIT_S = 1500.0
POLL_S = 0.1
BEGUN = 0.25
"""Share of the places that are done when a fault strikes."""
SCORED = (TrajectoryStatus.TERMINATED, TrajectoryStatus.TRUNCATED)


class Server:
    """What the benchmark reads and queues on the server's database."""

    def __init__(self, environment: dict[str, str]) -> None:
        os.environ.update(environment)
        import django

        django.setup()
        from webapp.accounts.models import Team

        self.team = Team.objects.order_by("pk").first()

    def queue(self, count: int) -> list[int]:
        """Groups of one oracle trajectory each."""
        from webapp.experiments.models import TaskRecord
        from webapp.trajectories.services.groups import GroupSpec, create_group

        tasks = list(TaskRecord.objects.order_by("pk")[:8])
        return [
            create_group(
                request=GroupSpec(
                    task=tasks[number % len(tasks)],
                    size=1,
                    purpose=Purpose.VERIFICATION,
                    source=Source.ORACLE,
                ),
                team_id=self.team.pk,
            ).pk
            for number in range(count)
        ]

    def wait_for_workers(self, count: int) -> None:
        from webapp.fleet.models import Worker, WorkerStatus

        online = Worker.objects.filter(queue="env", status=WorkerStatus.ONLINE)
        wait_for(f"{count} env workers", lambda: online.count() >= count, patience_s=WORKERS_WITHIN_S)

    def num_finished(self, groups: list[int]) -> int:
        from webapp.trajectories.models import Group

        return Group.objects.filter(pk__in=groups).exclude(finished_at=None).count()

    def outcome(self, groups: list[int]) -> dict[str, Any]:
        """What became of the places."""
        from webapp.trajectories.models import Frame, Trajectory

        rows = Trajectory.objects.filter(group__in=groups)
        scored = rows.filter(status__in=SCORED)
        incomplete = 0
        for row in scored:
            turns = list(row.turns.all())
            frames = {turn.frame for turn in turns} | {row.final_frame}
            known = Frame.objects.filter(team_id=row.team_id, sha256__in=frames).count()
            whole = [turn.index for turn in turns] == list(range(row.num_turns)) and known == len(frames)
            incomplete += not (whole and all(turn.completed_at for turn in turns))
        hosts = scored.values_list("worker__host", flat=True)
        return {
            "places": len(groups),
            "scored": scored.count(),
            "places_scored": scored.values("group").distinct().count(),
            "score_1": scored.filter(score=1.0).count(),
            "incomplete": incomplete,
            "errored": sorted(rows.exclude(error_kind="").values_list("error_kind", flat=True)),
            "by_host": {host: list(hosts).count(host) for host in sorted(set(hosts))},
            "refused": self.num_refused(),
        }

    def num_refused(self) -> int:
        """Reports of joined hosts that could not be recorded."""
        from webapp.fleet.models import JoinedHost

        return sum(JoinedHost.objects.values_list("num_refused", flat=True))

    def sampled_for(self, experiment: int) -> dict[str, Any]:
        """Its trajectories by status and host, groups with more scored ones than places, reports refused."""
        from django.db.models import Count, F, Q

        from webapp.trajectories.models import Group, Trajectory

        kinds = Trajectory.objects.filter(group__experiment=experiment).values_list("status", "worker__host")
        counted = kinds.annotate(number=Count("pk")).order_by("status", "worker__host")
        is_scored = Q(trajectories__status__in=SCORED)
        groups = Group.objects.filter(experiment=experiment)
        scored = groups.annotate(number=Count("trajectories", filter=is_scored))
        return {
            "trajectories": {f"{status} on {host}": number for status, host, number in counted},
            "twice": scored.filter(number__gt=F("size")).count(),
            "refused": self.num_refused(),
        }


def run_places(server: Server, count: int, *strikes: Callable[[], None]) -> dict[str, Any]:
    """Queue, wait until all are final; one of `strikes` each time that another quarter is."""
    started, waiting = time.monotonic(), list(strikes)
    groups = server.queue(count)
    while (done := server.num_finished(groups)) < count:
        if waiting and done >= BEGUN * count * (1 + len(strikes) - len(waiting)):
            waiting.pop(0)()
        if time.monotonic() - started > LIMIT_S:
            break
        time.sleep(POLL_S)
    wall_s = time.monotonic() - started
    found = server.outcome(groups) | {"wall_s": round(wall_s, 1)}
    found["per_hour"] = round(3600 * found["scored"] / wall_s, 1)
    whole = found["scored"] == found["places_scored"] == found["score_1"] == count
    return found | {"passed": whole and not found["incomplete"] and not found["refused"] and not waiting}
