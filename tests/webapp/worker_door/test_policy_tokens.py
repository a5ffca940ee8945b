"""Each env host gets a token of its own for a policy server, which ends with its identity."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from testing.factories import make_group, make_team, make_trajectory, make_user
from testing.owned_world import SECRET as OWN_SECRET
from testing.owned_world import Owner, call_table, make_owner
from tests.webapp.worker_door.test_ownership import send
from training.contracts.policy_server import PolicyAccess
from webapp.experiments.models import Attempt
from webapp.fleet.models import JoinedHost
from webapp.worker_door.job_tickets import make_ticket
from webapp.worker_door.joined_hosts import joining
from webapp.worker_door.joined_hosts.contract_version import version

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_client")]
SECRET = "of the attempt"


@pytest.fixture
def owners() -> list[Owner]:
    """Two joined hosts of one team; the first one's attempt runs a policy server."""
    team = make_team()
    owners = [make_owner("near", team), make_owner("far", team)]
    Attempt.objects.filter(pk=owners[0].attempt.pk).update(policy_url="https://p", policy_token=SECRET)
    return owners


def token_of(host: Owner, attempt: Attempt) -> str:
    """What it gets with a claim of the attempt's trajectory."""
    group = make_group(experiment=attempt.experiment, attempt=attempt.number, source="policy")
    row = make_trajectory(group=group, status="queued", turns=0, source="policy")
    ticket = make_ticket(row.pk, host.name)
    claim = {"trajectory_id": row.pk, "worker_name": host.env.name, "ticket": ticket}
    status, answer = send(host, "claim", claim)
    assert status == 200, answer
    return str(answer["policy_token"])


def test_hosts_of_one_attempt_have_tokens_of_their_own(owners):
    near, far = (token_of(owner, owners[0].attempt) for owner in owners)
    assert len({near, far, SECRET}) == 3
    access = PolicyAccess(SECRET)
    assert [bytes.fromhex(access.opener_of(token).host).decode() for token in (near, far)] == ["near", "far"]


def test_the_policy_server_hears_of_a_revoked_host_with_the_next_beat(owners):
    near, far = owners
    token, access = token_of(far, near.attempt), PolicyAccess(SECRET)

    def beat() -> None:
        status, answer = send(near, "beat_attempt", call_table(near)["beat_attempt"])
        assert status == 200
        access.end(answer["ended_hosts"])

    beat()
    assert access.opener_of(token) is not None
    joining.revoke(host=JoinedHost.objects.get(host__name="far"), user=make_user("admin"))
    beat()
    assert access.opener_of(token) is None
    assert access.opener_of(token_of(near, near.attempt)) is not None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[timedelta]:
    """How far the server's clock is off, which a test changes."""
    off, now = [timedelta(0)], timezone.now
    monkeypatch.setattr(timezone, "now", lambda: now() + off[0])
    return off


@pytest.mark.parametrize("hours", [-2, 0, 2])
def test_a_clock_that_jumps_keeps_no_revoked_host_and_shuts_no_new_one_out(owners, clock, hours):
    """Back to before it joined, and before the attempt began, too."""
    near, far = owners
    token, access = token_of(far, near.attempt), PolicyAccess(SECRET)
    clock[0] = timedelta(hours=hours)
    joining.revoke(host=JoinedHost.objects.get(host__name="far"), user=make_user("admin"))

    def beat() -> None:
        access.end(send(near, "beat_attempt", call_table(near)["beat_attempt"])[1]["ended_hosts"])

    beat()
    assert access.opener_of(token) is None
    clock[0] = timedelta(hours=2 * min(hours, 0))
    invited = joining.make_token(user=make_user("admin", name="again"), roles=("env", "gpu"), team=None)
    joining.join(token=invited.partition(".")[0], name="far", roles=("env",), sent_version=version())
    JoinedHost.objects.filter(host__name="far").update(digest=joining._digest(OWN_SECRET))
    fresh = token_of(far, near.attempt)
    beat()
    assert access.opener_of(fresh) is not None
    assert access.opener_of(token) is None
