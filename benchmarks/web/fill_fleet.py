"""Three days of a fleet of many hosts, as the mirrors' ticks leave them."""

from __future__ import annotations

from django.utils import timezone

from testing.fleet_rows import make_host
from webapp.fleet.models import EndedMinute, HostSample
from webapp.fleet.queries.history import MAX_POINTS, WINDOWS, width_s
from webapp.fleet.services.history import count_ended

NUM_HOSTS = 32
DESKTOPS_PER_HOST = 32


def fill_fleet() -> None:
    """Samples of every width and, of the trajectories that there are, the counts by minute."""
    now_s = int(timezone.now().timestamp())
    hosts = [make_host(f"host{number}") for number in range(NUM_HOSTS)]
    for window in WINDOWS.values():
        width = width_s(window)
        HostSample.objects.bulk_create(
            (
                HostSample(
                    host=host,
                    width_s=width,
                    bucket=now_s // width - age,
                    ready=age % 7,
                    leased=DESKTOPS_PER_HOST - age % 7 - 1,
                    booting=1,
                    dead=0,
                    quarantined=0,
                    reset_p50_s=0.04 + age % 9 / 100,
                    reset_p99_s=0.2 + age % 9 / 10,
                    leaks=0,
                )
                for host in hosts
                for age in range(MAX_POINTS)
            ),
            batch_size=5000,
        )
    num_counted = -1
    while num_counted != (num_counted := EndedMinute.objects.count()):
        count_ended()


def fleet_pages() -> dict[str, str]:
    """Name -> path."""
    return {f"fleet history, {hours} h": f"/fleet/history/?hours={hours}" for hours in WINDOWS}
