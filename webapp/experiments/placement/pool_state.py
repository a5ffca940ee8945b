"""The pool as the database knows it: what the decision depends on."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from django.db.models import Q

from training.contracts.config import ExperimentConfig
from webapp.experiments.models import ACTIVE_STATUSES, Experiment, ExperimentStatus
from webapp.experiments.placement.pool import CPU, Demand, Held, Place, Pool, PoolWorker, Waiting
from webapp.experiments.queries.queue import waiting_experiments
from webapp.fleet.models import Worker, WorkerStatus
from webapp.fleet.queries.env_capacity import host_teams

FOREIGN_SHARE = 0.2
"""With more of its memory in use, a GPU that none of our experiments holds belongs to another program."""
NUM_REMEMBERED = 4096
"""Experiments whose configs are not read again at each look."""


def read_pool(online: list[Worker]) -> Pool:
    """Of `gpu_workers()`; two queries, and one for experiments that were not seen before."""
    workers = _with_teams(workers_in_pool(online), online)
    has_gpus, has_teams = have_gpus(workers), any(worker.team for worker in workers)
    held, waiting = [], []
    placed = Experiment.objects.filter(is_placed()).order_by("pk")
    places = ("pk", "team_id", "placed_worker", "placed_keys", "placed_members")
    for pk, team, worker, keys, members in placed.values_list(*places):
        for one in [{"worker": worker, "keys": keys}, *members]:
            held.append(Held(pk=pk, team=team, worker=one["worker"], keys=frozenset(one["keys"])))
    columns = ("pk", "team_id", "priority", "num_passed", "created_at", "placed_worker")
    rows = waiting_experiments().exclude(is_placed()).values_list(*columns)
    for pk, team, priority, num_passed, made, last in rows:
        waiting.append(
            Waiting(
                pk=pk,
                team=team,
                priority=priority,
                demand=replace(
                    demand_of_row(pk, made, has_gpus=has_gpus, ran_before=bool(last)),
                    team=team if has_teams else 0,
                ),
                num_passed=num_passed,
                home=last.rpartition("@")[2],
            )
        )
    return Pool(workers=workers, held=held, waiting=waiting)


def _with_teams(workers: list[PoolWorker], online: list[Worker]) -> list[PoolWorker]:
    """Joined ones with the team that they work for."""
    teams = host_teams() if any(row.is_joined for row in online) else {}
    return [replace(worker, team=teams.get(worker.host, 0)) for worker in workers]


def is_placed() -> Q:
    """It runs, or its job was sent and not yet claimed."""
    sent = Q(status=ExperimentStatus.QUEUED, dispatched_at__isnull=False)
    return Q(status__in=ACTIVE_STATUSES) | sent


def gpu_workers() -> list[Worker]:
    """Online gpu workers that take work."""
    return list(
        Worker.objects.filter(queue="gpu", status=WorkerStatus.ONLINE, is_draining=False).order_by("name")
    )


def workers_in_pool(online: list[Worker]) -> list[PoolWorker]:
    """Those of them that have reported what they have."""
    return [_pool_worker(row) for row in online if row.gpus is not None]


def have_gpus(workers: Sequence[PoolWorker]) -> bool:
    return any(place.kind != CPU for worker in workers for place in worker.places)


def demand_of(config: ExperimentConfig, *, has_gpus: bool, ran_before: bool = False) -> Demand:
    """What an experiment asks for; bfloat16 waits for GPUs wherever a worker has some.

    It begins with all its hosts, and may go on with fewer.
    """
    needs = config.engine.name == "sglang" or (config.model.dtype == "bfloat16" and has_gpus)
    return Demand(
        num_places=config.num_gpus_per_host,
        num_hosts=config.optimiser.num_hosts,
        least_hosts=config.optimiser.least_hosts if ran_before else 0,
        needs_gpus=needs,
    )


@lru_cache(maxsize=NUM_REMEMBERED)
def demand_of_row(pk: int, _created_at: datetime, *, has_gpus: bool, ran_before: bool) -> Demand:
    """Of a stored experiment; its config never changes."""
    config = Experiment.objects.only("config").get(pk=pk).settings
    return demand_of(config, has_gpus=has_gpus, ran_before=ran_before)


def _pool_worker(row: Worker) -> PoolWorker:
    gpus = row.gpus or []
    places = [
        Place(
            key=gpu.get("uuid") or f"{row.host}/{number}",
            kind=gpu["name"],
            memory_bytes=gpu["memory_bytes"],
            is_foreign=gpu.get("free_bytes", gpu["memory_bytes"]) < (1 - FOREIGN_SHARE) * gpu["memory_bytes"],
        )
        for number, gpu in enumerate(gpus)
    ] or [Place(key=f"{row.host}/cpu{number}") for number in range(row.cpu_places)]
    return PoolWorker(
        name=row.name, places=tuple(places), is_uncounted=not places, joins_gangs=bool(row.address)
    )
