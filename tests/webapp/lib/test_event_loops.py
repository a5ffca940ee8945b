"""No event loop calls the database: Django refuses it, and a test in which it happens fails."""

import asyncio
import threading

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.db import connection

from testing import loop_guard
from webapp.accounts.models import Team
from webapp.lib.database_pool import give_back_connection

pytestmark = pytest.mark.django_db


def noted() -> int:
    """How many calls were noted since; they fail this test no more."""
    count = len(loop_guard.calls)
    loop_guard.calls.clear()
    return count


@pytest.mark.parametrize(
    "call", [Team.objects.count, connection.close, give_back_connection], ids=["query", "close", "give back"]
)
async def test_a_call_is_refused_and_noted_on_every_database(call):
    with pytest.raises(SynchronousOnlyOperation):
        call()
    assert noted() == 1
    await asyncio.to_thread(give_back_connection)
    assert noted() == 0


def test_playwrights_loop_is_exempt_and_loops_of_other_threads_are_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop_guard, "_is_main_thread_exempt", True)

    async def count() -> int:
        return Team.objects.count()

    assert asyncio.run(count()) == 0
    assert noted() == 0
    refused: list[str] = []

    def work() -> None:
        try:
            asyncio.run(count())
        except SynchronousOnlyOperation as error:
            refused.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(refused) == noted() == 1
