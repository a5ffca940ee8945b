"""A hostile member of a gang: it has its own seat there, and nothing that is the first host's."""

from __future__ import annotations

import pytest

from testing.factories import make_team
from testing.owned_world import Owner, call_table, make_owner, rows_of
from tests.webapp.worker_door.test_ownership import send, undone
from webapp.experiments.models import GangMember
from webapp.lib.remote_calls import Owned, call_named

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_client")]
OF_ALL_MEMBERS = {"gathering", "is_current", "runnable_config"}
"""What each host of a gang asks of its attempt."""
OF_AN_ATTEMPT = {Owned.ATTEMPT, Owned.GANG_ATTEMPT, Owned.TEAM_ATTEMPT}


@pytest.fixture
def first() -> Owner:
    """Its attempt has a gang: itself, an honest host and the hostile one."""
    return make_owner("first", make_team())


@pytest.fixture
def honest(first: Owner) -> Owner:
    made = make_owner("honest", first.team)
    GangMember.objects.create(attempt=first.attempt, host=1, worker_name=made.gpu.name)
    return made


@pytest.fixture
def evil(first: Owner) -> Owner:
    made = make_owner("evil", first.team)
    GangMember.objects.create(attempt=first.attempt, host=2, worker_name=made.gpu.name)
    return made


def test_it_may_ask_what_members_ask_and_does_nothing_for_the_gang(first, honest, evil):
    before = [rows_of(first), rows_of(honest)]
    served = set()
    for name, arguments in call_table(first).items():
        if OF_AN_ATTEMPT & set(call_named(name).owned.values()):
            with undone():
                if send(evil, name, arguments)[0] == 200:
                    served.add(name)
                assert [rows_of(first), rows_of(honest)] == before, name
    assert served == OF_ALL_MEMBERS


def come(caller: Owner, first: Owner, **said: object) -> object:
    seat = {"attempt_id": first.attempt.pk, "host": 2, "worker_name": caller.gpu.name}
    seat |= {"address": "10.0.0.9:1"}
    return send(caller, "come", seat | said)[1]


def test_it_takes_its_own_seat_once_and_no_other(first, honest, evil):
    assert come(evil, first)
    assert not come(evil, first, address="10.0.0.10:1"), "it has come to another address"
    for seat in (0, 1, 3):
        assert not come(evil, first, host=seat)
    assert send(evil, "come", call_table(first)["come"])[0] == 403
    assert come(honest, first, host=1)


def test_it_says_of_no_other_that_it_left(first, honest, evil):
    for seat in (0, 1):
        said = {"attempt_id": first.attempt.pk, "host": seat, "problem": "p", "is_left_alone": True}
        assert send(evil, "leave", said)[0] == 403
    assert not GangMember.objects.exclude(problem="").exists()
    assert send(evil, "leave", said | {"host": 2})[0] == 200
    assert GangMember.objects.exclude(problem="").get().worker_name == evil.gpu.name


def test_a_host_that_was_not_called_is_no_member(first, honest):
    stranger = make_owner("stranger", first.team)
    for name in OF_ALL_MEMBERS:
        assert send(stranger, name, call_table(first)[name])[0] == 403
    assert not come(stranger, first)
