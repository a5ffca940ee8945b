"""Export and import by their pages: one's own file comes back without a copy, and holds one moment."""

import asyncio

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from testing.factories import make_replay_entry, make_task_set, make_team, make_trajectory, make_user
from webapp.accounts.models import Role
from webapp.replay.inbox_admission import offer_to_inbox
from webapp.replay.models import ReplayEntry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def team():
    return make_team()


@pytest.fixture
def web(team, client):
    client.force_login(make_user(Role.ANNOTATOR, team=team))
    return client


def read(response) -> bytes:
    async def whole() -> bytes:
        return b"".join([chunk async for chunk in response.streaming_content])

    return asyncio.run(whole())


def send(web, lines: list[bytes], task_set, **more):
    file = SimpleUploadedFile("replay.jsonl", b"\n".join(lines))
    return web.post("/replay/transfer/", {"file": file, "task_set": task_set.name, **more})


def test_importing_ones_own_export_adds_nothing(web, team):
    entry = offer_to_inbox(trajectory=make_trajectory(team=team, turns=3))
    task_set = entry.trajectory.task.task_set
    lines = read(web.get("/replay/export/?verdict=all")).splitlines()
    dry = send(web, lines, task_set, dry_run="1").content.decode()
    assert "Dry run: 0 new entries, 1 here already" in dry
    assert f"entry {entry.pk}" in dry
    send(web, lines, task_set, keep_labels="1")
    assert ReplayEntry.objects.count() == 1


def test_a_dry_run_stores_no_entry_and_finds_repeats_within_the_file(web, team):
    other = make_replay_entry(verdict="gold", turns=3)
    task_set = other.trajectory.task.task_set
    mine = make_user(Role.ANNOTATOR, team=team)
    web.force_login(make_user(Role.ANNOTATOR, team=other.team))
    lines = read(web.get("/replay/export/")).splitlines() * 2
    web.force_login(mine)
    page = send(web, lines, task_set, dry_run="1").content.decode()
    assert "Dry run: 1 new entry, 1 here already" in page
    assert "line 2: the same as an earlier line" in page
    assert not ReplayEntry.objects.filter(team=team).exists()
    send(web, lines, task_set)
    assert ReplayEntry.objects.filter(team=team).count() == 1


def test_an_export_holds_the_verdicts_of_the_moment_it_began(web, team):
    entries = [make_replay_entry(team=team, verdict="gold") for _ in range(2)]
    response = web.get("/replay/export/?images=sha256")
    ReplayEntry.objects.filter(pk=entries[1].pk).update(verdict="inbox", note="changed meanwhile")
    text = read(response)
    assert text.count(b'"verdict":"gold"') == 2
    assert b"changed meanwhile" not in text


def test_a_task_set_is_asked_for(web):
    make_task_set("x")
    response = web.post(
        "/replay/transfer/", {"file": SimpleUploadedFile("a.jsonl", b"{}"), "task_set": "none"}
    )
    assert "task_set: choose" in response.content.decode()
