"""Export by its page: an export holds one moment. What the page refuses of an upload."""

import asyncio

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from testing.factories import make_replay_entry, make_task_set
from webapp.replay.imports import run
from webapp.replay.models import ReplayEntry, ReplayImport
from webapp.replay.services import imports

pytestmark = pytest.mark.django_db(transaction=True)


def read(response) -> bytes:
    async def whole() -> bytes:
        return b"".join([chunk async for chunk in response.streaming_content])

    return asyncio.run(whole())


def test_an_export_holds_the_verdicts_of_the_moment_it_began(web, team):
    entries = [make_replay_entry(team=team, verdict="gold") for _ in range(2)]
    response = web.get("/replay/export/?images=sha256")
    ReplayEntry.objects.filter(pk=entries[1].pk).update(verdict="inbox", note="changed meanwhile")
    text = read(response)
    assert text.count(b'"verdict":"gold"') == 2
    assert b"changed meanwhile" not in text


@pytest.mark.parametrize(
    ("body", "task_set", "said"),
    [
        (b"{}", "none", "task_set: choose"),
        (b"", "x", "file: is empty"),
        (None, "x", "file: choose a file: .jsonl, "),
    ],
)
def test_what_an_upload_lacks_is_named(web, body, task_set, said):
    make_task_set("x")
    file = {} if body is None else {"file": SimpleUploadedFile("a.jsonl", body)}
    response = web.post("/replay/transfer/", {**file, "task_set": task_set})
    assert response.status_code == 400
    assert said in response.content.decode()
    assert not ReplayImport.objects.exists()


def test_open_imports_of_a_team_are_few(web, monkeypatch):
    monkeypatch.setattr(imports, "MAX_OPEN", 1)
    monkeypatch.setattr(run, "AT_ONCE_BYTES", 0)
    make_task_set("x")

    def send():
        return web.post("/replay/transfer/", {"file": SimpleUploadedFile("a", b"{}"), "task_set": "x"})

    assert send().status_code == 302
    refused = send()
    assert refused.status_code == 400
    assert "import or cancel one of them" in refused.content.decode()
    ReplayImport.objects.get().cancel()
    assert send().status_code == 302
