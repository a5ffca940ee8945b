"""A host that joined for one team gets that team's work only, and the others lose no place to it."""

from __future__ import annotations

import pytest
from django.utils import timezone

from testing.factories import make_group, make_team, make_trajectory
from testing.fleet_rows import make_worker
from testing.owned_world import make_owner
from tests.webapp.worker_door.test_ownership import send
from webapp.accounts.models import Team
from webapp.dispatcher.services.waiting_trajectories import fill_free_slots
from webapp.experiments.placement.decision import decide
from webapp.experiments.placement.pool import Demand, Pool, PoolWorker, Waiting
from webapp.fleet.models import JoinedHost, Worker
from webapp.lib.send_job import RUN_TRAJECTORY, send_job
from webapp.trajectories.models import Trajectory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_client")]


def queue(team: Team, count: int) -> list[int]:
    group = make_group(team=team)
    return [make_trajectory(group=group, status="queued", turns=0, member=n).pk for n in range(count)]


def test_it_takes_its_teams_jobs_and_leaves_the_others():
    own, other = make_team(), make_team()
    host = make_owner("far", own)
    JoinedHost.objects.update(team=own)
    mine, theirs = queue(own, 2), queue(other, 2)
    for pk in (theirs[0], mine[0], theirs[1], mine[1]):
        send_job(RUN_TRAJECTORY, pk)
    ask = {"worker_name": host.env.name, "count": 9}
    assert sorted(map(int, send(host, "take_jobs", ask)[1])) == mine
    JoinedHost.objects.update(team=None)
    assert sorted(map(int, send(host, "take_jobs", ask)[1])) == theirs, "they waited"


def test_slots_of_one_teams_hosts_are_no_room_for_another_one():
    own, other = make_team(), make_team()
    host = make_owner("far", own)
    JoinedHost.objects.update(team=own)
    Trajectory.objects.update(ended_at=timezone.now(), status="errored")
    Worker.objects.filter(pk=host.env.pk).update(slots=4)
    make_worker("env1@near", host="near", slots=1)
    theirs = queue(other, 9)
    fill_free_slots()
    assert Trajectory.objects.filter(pk__in=theirs).exclude(sent_at=None).count() == 2, (
        "a slot and a spare job"
    )
    mine = queue(own, 9)
    fill_free_slots()
    assert Trajectory.objects.filter(pk__in=mine).exclude(sent_at=None).count() == 5


def test_its_gpus_are_for_its_team():
    workers = [PoolWorker(name="gpu1@far", is_uncounted=True, team=7)]
    waiting = [Waiting(pk=team, team=team, demand=Demand(team=team)) for team in (3, 7)]
    assert [one.pk for one in decide(Pool(workers=workers, waiting=waiting)).assignments] == [7]
