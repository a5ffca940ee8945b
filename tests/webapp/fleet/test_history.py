"""History charts of the fleet: what mirrors' ticks keep, and what is read of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import Client
from django.utils import timezone

from testing.factories import make_trajectory
from testing.fleet_rows import make_host, make_sample
from webapp.fleet.models import EndedMinute, HostSample
from webapp.fleet.services import history
from webapp.trajectories.models import Trajectory

pytestmark = pytest.mark.django_db


def test_history_sums_hosts_takes_the_worst_reset_and_the_errored_share(client: Client, viewer):
    now = timezone.now()
    for name, ready, p99 in (("h1", 2, 0.5), ("h2", 3, 0.0)):
        make_sample(make_host(name), now, ready=ready, leased=1, reset_p50_s=p99 / 2, reset_p99_s=p99)
    make_trajectory(ended_at=now)
    make_trajectory(status="errored", ended_at=now)
    make_trajectory(status="errored", ended_at=now - timedelta(hours=5))
    answer = client.get("/fleet/history/?hours=1").json()
    series = answer["series"]
    assert series["desktops/ready"]["y"] == [5]
    assert series["desktops/leased"]["y"] == [2]
    assert series["reset/p99"]["y"] == [0.5]
    assert series["errored/of_all_that_ended"]["y"] == [0.5]
    longer = client.get("/fleet/history/?hours=24").json()["series"]
    assert 1.0 in longer["errored/of_all_that_ended"]["y"]
    assert {name for panel in answer["panels"] for name in panel["names"]} >= set(series)
    assert client.get("/fleet/history/?hours=evil").json()["series"]["trouble/leaked"]["y"] == [0]


def test_history_is_put_into_buckets_of_which_each_host_gives_its_last_look(
    client: Client, viewer, django_assert_max_num_queries
):
    start = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=21)
    hosts = [make_host(name) for name in ("h1", "h2")]
    for seconds, host, ready in ((0, 0, 1), (3, 1, 10), (9, 0, 2), (20, 0, 4), (1199, 0, 5)):
        make_sample(hosts[host], start + timedelta(seconds=seconds), ready=ready)
    with django_assert_max_num_queries(8):
        series = client.get("/fleet/history/?hours=6").json()["series"]["desktops/ready"]
    began = start.timestamp() * 1000
    assert series == {"x": [began, began + 19 * 60_000], "y": [14, 5]}
    series = client.get("/fleet/history/?hours=1").json()["series"]["desktops/ready"]
    assert series == {"x": [began, began + 20_000, began + 1_190_000], "y": [12, 4, 5]}


def test_three_days_take_as_many_rows_as_an_hour():
    host = make_host()
    start = datetime(2026, 11, 20, tzinfo=UTC)
    for seconds in range(0, 7200, 30):
        make_sample(host, start + timedelta(seconds=seconds), ready=seconds)
    rows = HostSample.objects.filter(width_s=720).order_by("bucket")
    assert [row.ready for row in rows] == [690 + 720 * number for number in range(10)], "the last look counts"


def test_minutes_are_counted_once_and_outlive_their_trajectories(client: Client, viewer):
    make_host()
    now = timezone.now()
    for minutes, status in ((200, "terminated"), (200, "errored"), (200, "cancelled"), (4000, "errored")):
        make_trajectory(status=status, ended_at=now - timedelta(minutes=minutes))
    for _ in range(2):
        history.sample_host(host="h1")
    assert sum(row.num_errored for row in EndedMinute.objects.all()) == 1, "six hours at a time"
    for _ in range(20):
        history.sample_host(host="h1")
    assert sum(row.num_errored for row in EndedMinute.objects.all()) == 2
    assert sum(row.num_ended for row in EndedMinute.objects.all()) == 3
    Trajectory.objects.all().delete()
    make_trajectory(status="errored", ended_at=now)
    series = client.get("/fleet/history/?hours=72").json()["series"]["errored/of_all_that_ended"]
    assert series["y"] == [1.0, 0.5, 1.0], "counted ones, and those of the present minute"


def test_history_that_no_chart_reaches_is_forgotten():
    now = timezone.now()
    for days in (0, 2, 4):
        make_sample(make_host(f"h{days}"), now - timedelta(days=days))
        EndedMinute.objects.create(
            minute=int(now.timestamp()) // 60 - days * 1440, num_ended=1, num_errored=0
        )
    history.forget_history()
    kept = HostSample.objects.order_by("width_s", "host_id").values_list("host__name", "width_s")
    assert list(kept) == [("h0", 10), ("h0", 60), ("h0", 240), ("h0", 720), ("h2", 720)]
    assert EndedMinute.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_an_upgrade_keeps_the_samples_of_the_last_three_days():
    executor = MigrationExecutor(connection)
    newest = [node for node in executor.loader.graph.leaf_nodes() if node[0] == "fleet"]
    old = executor.migrate([("fleet", "0006_placement")]).apps
    host = old.get_model("fleet", "Host").objects.create(name="h1")
    samples = old.get_model("fleet", "HostSample").objects
    start = datetime(2026, 11, 20, tzinfo=UTC)
    counts = dict.fromkeys(("leased", "booting", "dead", "quarantined", "num_resets", "leaks"), 0)
    figures = dict.fromkeys(("reset_p50_s", "reset_p99_s", "cpu_percent"), 0.0)
    for seconds in range(0, 7200, 30):
        at = start + timedelta(seconds=seconds)
        samples.create(host=host, at=at, ready=seconds, **counts, **figures)
    executor = MigrationExecutor(connection)
    executor.migrate(newest)
    rows = HostSample.objects.order_by("bucket")
    assert [row.ready for row in rows.filter(width_s=720)] == [690 + 720 * number for number in range(10)]
    assert rows.filter(width_s=10).count() == 120, "an hour of them, every 30 s"
    assert set(rows.values_list("width_s", flat=True)) == {10, 60, 240, 720}
