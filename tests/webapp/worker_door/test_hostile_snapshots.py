"""What a host says of the snapshots that branches wake up from."""

from __future__ import annotations

import pytest

from testing.factories import make_team, make_user
from testing.owned_world import Owner, call_table, make_owner
from tests.webapp.worker_door.test_ownership import send
from webapp.experiments.models import Attempt
from webapp.trajectories.models import Snapshot, Trajectory
from webapp.trajectories.services.branches import BranchRequest, branch_trajectory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_client")]


@pytest.fixture
def own() -> Owner:
    return make_owner("ours", make_team())


NAMES = ("../../etc/passwd", "/etc/passwd", "", ".", "a\0b", "x" * 41, "a b", "a\n")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("name", text) for text in NAMES),
        *(("turn", turn) for turn in (-1, 2**31, 2**63, "x")),
        *(("size_mb", size) for size in (-1.0, 1e308, "NaN", "Infinity")),
        *(("took_s", took) for took in (-1.0, 1e308, "-Infinity")),
        ("host", "theirs"),
    ],
)
def test_a_snapshot_that_none_can_be_is_refused(own: Owner, name: str, value: object) -> None:
    whole = call_table(own)["record_snapshot"]
    assert send(own, "record_snapshot", whole | {name: value})[0] in (403, 500)
    assert not Snapshot.objects.exists()
    assert send(own, "record_snapshot", whole)[0] == 200


def test_its_snapshot_is_woken_on_no_other_machine(own: Owner) -> None:
    """Nor named to another: the group waits for the machine that keeps it, or is given up."""
    other = make_owner("other", own.team)
    assert send(own, "record_snapshot", call_table(own)["record_snapshot"])[0] == 200
    asked = {"host": "ours", "created": {}, "asked_at": "2026-11-27T00:00:00Z"}
    assert send(other, "record_lost_snapshot", {"host": "ours", "name": "s"})[0] == 403
    assert send(other, "unknown_snapshots", asked)[0] == 403
    assert Snapshot.objects.get().status == "kept"
    Trajectory.objects.filter(pk=own.running.pk).update(status="terminated", score=0.0, reward=0.0)
    Attempt.objects.filter(pk=own.attempt.pk).update(policy_url="https://p")
    own.running.refresh_from_db()
    person, request = (
        make_user("operator", team=own.team),
        BranchRequest(turn=0, size=1),
    )
    group = branch_trajectory(trajectory=own.running, request=request, user=person)
    assert {row.host for row in group.trajectories.all()} == {"ours"}
