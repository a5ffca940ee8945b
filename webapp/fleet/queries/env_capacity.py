"""How much env workers can run: slots, workers and machines that take work."""

from collections import Counter

from django.db.models import Count, QuerySet, Sum

from webapp.fleet.models import JoinedHost, Worker, WorkerStatus


def env_capacity() -> tuple[int, int]:
    """(trajectories that the online env workers can run at once, workers); draining ones take none."""
    online = Worker.objects.filter(queue="env", status=WorkerStatus.ONLINE, is_draining=False)
    found = online.aggregate(slots=Sum("slots"), workers=Count("pk"))
    return found["slots"] or 0, found["workers"]


def host_teams() -> dict[str, int]:
    """Joined hosts that work for one team only -> that team."""
    limited = JoinedHost.objects.filter(revoked_at=None).exclude(team=None)
    return dict(limited.values_list("host__name", "team_id"))


def kept_capacity() -> Counter[int]:
    """Team -> slots and workers of hosts that work for it only."""
    teams, kept = host_teams(), Counter[int]()
    if teams:
        online = Worker.objects.filter(queue="env", status=WorkerStatus.ONLINE, is_draining=False)
        for host, slots in online.filter(host__in=teams).values_list("host", "slots"):
            kept[teams[host]] += slots + 1
    return kept


def count_env_slots() -> int:
    """Trajectories that the online env workers can run at once."""
    return env_capacity()[0]


def slots_of_host(host: str) -> QuerySet[Worker, int]:
    """The same of one machine, as part of another query; no row without such a worker."""
    online = Worker.objects.filter(queue="env", status=WorkerStatus.ONLINE, is_draining=False, host=host)
    return online.values("host").annotate(total=Sum("slots")).values_list("total", flat=True)


def hosts_at_work(*, draining_too: bool = False) -> set[str]:
    """Machines with an online env worker that takes work, or (`draining_too`) with any online one."""
    return set(host_names_at_work(draining_too=draining_too))


def host_names_at_work(*, draining_too: bool = False) -> QuerySet[Worker, str]:
    """The same as part of another query."""
    online = Worker.objects.filter(queue="env", status=WorkerStatus.ONLINE)
    return (online if draining_too else online.filter(is_draining=False)).values_list("host", flat=True)
