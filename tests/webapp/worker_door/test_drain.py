"""`manage.py drain`: what a pod runs before it ends."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from testing.factories import make_trajectory
from testing.fleet_rows import make_host, make_worker
from webapp.fleet.models import Host, Worker

pytestmark = [pytest.mark.django_db, pytest.mark.db]


def test_a_machine_takes_nothing_new_and_says_what_it_still_runs():
    make_host("pod-1")
    worker, other = make_worker("env@pod-1", host="pod-1"), make_worker("env@pod-2", host="pod-2")
    trajectory = make_trajectory(worker=worker, status="running", turns=0)
    with pytest.raises(CommandError, match="pod-1 still runs 1 trajectories"):
        call_command("drain", "--host", "pod-1", "--limit", "0")
    assert Host.objects.get(name="pod-1").is_draining
    assert dict(Worker.objects.values_list("name", "is_draining")) == {worker.name: True, other.name: False}
    type(trajectory).objects.update(status="terminated")
    call_command("drain", "--host", "pod-1", "--limit", "0")
    call_command("drain", "--host", "pod-1", "--off")
    assert not Worker.objects.filter(is_draining=True).exists()
