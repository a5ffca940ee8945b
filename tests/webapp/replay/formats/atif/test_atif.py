"""ATIF documents: ours come back as they left and keep harbor's rules, others' come in as far as they say."""

import hashlib
import json
from base64 import b64decode
from io import BytesIO
from zipfile import ZipFile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from testing.atif_rules import broken_rules
from testing.factories import make_replay_entry, make_task, make_team, make_user
from testing.first_desk_screens import menu_screen
from webapp.accounts.models import Role
from webapp.accounts.services.tokens import create_token
from webapp.dispatcher.work_kinds import kinds
from webapp.replay.formats.atif.archive import archive_pieces
from webapp.replay.formats.atif.read import line_of_document
from webapp.replay.formats.atif.write import document_of
from webapp.replay.formats.slime_export import export_line
from webapp.replay.models import ReplayEntry
from webapp.replay.services.imports import approve_import, request_import

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(
    lambda text: "<image>" not in text
)
shown = st.lists(texts, min_size=1, max_size=3)
"""Texts around the pictures of a user's message."""
calls = st.sampled_from(
    [
        '<tool_call>\n{"name": "computer_use", "arguments": {"action": "wait", "time": 1}}\n</tool_call>',
        '<tool_call>\n{"action": "left_click", "coordinate": [12, 40]}\n</tool_call>',
        "pyautogui.click(1, 2)",
        "",
    ]
)
messages = st.lists(
    st.one_of(
        st.tuples(st.just("system"), texts, st.none()),
        st.tuples(st.just("user"), shown.map("<image>".join), st.none()),
        st.tuples(
            st.just("assistant"), st.tuples(texts, calls).map("\n".join), st.sampled_from([None, 0, 1])
        ),
        st.tuples(st.just("human"), texts, st.none()),
    ),
    min_size=1,
    max_size=9,
)
plain_json = st.dictionaries(
    texts, st.one_of(st.none(), st.booleans(), st.integers(-9, 9), texts), max_size=3
)


@settings(max_examples=40)
@given(messages, plain_json, st.one_of(st.none(), st.floats(0.5, 2)))
def test_every_line_comes_back_as_it_left(chosen, others, reward):
    said = [
        {"role": role, "content": text} | ({} if mask is None else {"step_loss_mask": mask})
        for role, text, mask in chosen
    ]
    num_images = sum(text.count("<image>") for role, text, _ in chosen if role in ("user", "human"))
    bodies = [f"picture {number}".encode() for number in range(num_images)]
    shas = [hashlib.sha256(body).hexdigest() for body in bodies]
    others = {name: value for name, value in others.items() if name not in ("messages", "images")}
    line = {**others, "messages": said, "images": [], "reward": reward, "metadata": {"task_id": "t"}}
    document = json.loads(json.dumps(document_of(line, shas)))
    assert broken_rules(document) == []
    files = {f"images/{sha}.png": body for sha, body in zip(shas, bodies, strict=True)}
    back = line_of_document(document, files.__getitem__)
    assert [b64decode(image) for image in back.pop("images")] == bodies
    line.pop("images")
    assert back == line


def zipped(documents: dict[str, object], **files: bytes) -> bytes:
    out = BytesIO()
    with ZipFile(out, "w") as archive:
        for name, document in documents.items():
            archive.writestr(name, json.dumps(document))
        for name, body in files.items():
            archive.writestr(name.replace("__", "/"), body)
    return out.getvalue()


def import_zip(body: bytes, task, *, takes_unknown: bool = False):
    """(entries that it brought, what is wrong with the others)"""
    team = make_team()
    user = make_user("annotator", team=team)
    job = request_import(
        team=team, user=user, task_set=task.task_set, upload=SimpleUploadedFile("atif.zip", body),
        keep_labels=True, takes_unknown=takes_unknown,
    )  # fmt: skip
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    if approve_import(job=job, user=user):
        kinds["import"].run(job.pk)
    entries = list(ReplayEntry.objects.filter(team=team).order_by("pk"))
    return entries, [problem for _, problem in job.problems] or ([job.message] if not entries else [])


@pytest.mark.django_db
def test_an_archive_of_ours_brings_back_entries_with_their_tokens():
    task = make_task()
    entries = [make_replay_entry(turns=3, verdict="gold", tags=["clean"]) for _ in range(2)]
    for entry in entries:
        entry.trajectory.task = task
        entry.trajectory.save()
    body = b"".join(archive_pieces(entries))
    with ZipFile(BytesIO(body)) as archive:
        document = json.loads(archive.read(f"entry-{entries[0].pk}/trajectory.json"))
        images = {name for name in archive.namelist() if name.endswith(".png")}
    assert broken_rules(document) == []
    assert len(images) == 6
    agent = [step for step in document["steps"] if step["source"] == "agent"]
    assert agent[0]["tool_calls"][0]["arguments"] == {"action": "left_click", "coordinate": [20, 40]}
    assert agent[0]["metrics"]["logprobs"] == [-0.1, -0.2, -0.3]
    assert document["final_metrics"]["total_completion_tokens"] == 9

    entries[1].trajectory.turns.filter(index=0).update(thought="another")
    back, problems = import_zip(b"".join(archive_pieces(entries[:1])), task)
    assert problems == []
    line, before = (json.loads(export_line(entry)) for entry in (back[0], entries[0]))
    for name in ("messages", "images", "reward", "quality_rank", "num_steps"):
        assert line[name] == before[name]
    mine, its = line["metadata"]["deskhand"], before["metadata"]["deskhand"]
    for name in ("turns", "verdict", "tags", "thoughts", "source"):
        assert mine[name] == its[name]


def foreign(**changes: object) -> dict[str, object]:
    """What another agent of a desktop writes."""

    def seen(text: str) -> list[dict[str, object]]:
        picture = {"type": "image", "source": {"media_type": "image/png", "path": "screens/1.png"}}
        return [{"type": "text", "text": text}, picture]

    def click(**arguments: object) -> list[dict[str, object]]:
        return [{"tool_call_id": "a", "function_name": "left_click", "arguments": arguments}]

    steps = [
        {"step_id": 1, "source": "user", "message": seen("Open the reports")},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "reasoning_content": "The second row.",
            "tool_calls": click(x=12, y=40),
            "observation": {"results": [{"source_call_id": "a", "content": seen("clicked")}]},
        },
        {"step_id": 3, "source": "agent", "message": "Done.", "is_copied_context": False},
    ]
    return {
        "schema_version": "ATIF-v1.6",
        "session_id": "run-7",
        "agent": {"name": "other", "version": "2"},
        "steps": steps,
        **changes,
    }


@pytest.mark.django_db
def test_calls_of_one_step_are_actions_of_one_turn_and_go_out_as_such():
    steps = foreign()["steps"]
    two = [
        {"tool_call_id": "a", "function_name": "key_down", "arguments": {"keys": ["ctrl"]}},
        {"tool_call_id": "b", "function_name": "left_click", "arguments": {"x": 12, "y": 40}},
    ]
    steps[1]["tool_calls"] = two
    body = zipped({"runs/a.json": foreign(steps=steps)}, **{"runs__screens__1.png": menu_screen(2)})
    (entry,), problems = import_zip(body, make_task(), takes_unknown=True)
    assert problems == []
    first = entry.trajectory.turns.order_by("index").first()
    assert [action["kind"] for action in first.earlier_actions] == ["key_down"]
    assert first.action["kind"] == "click"


@pytest.mark.django_db
def test_another_agents_documents_come_in_and_bad_ones_are_listed():
    bad = {
        "c.json": {"hello": 1},
        "d.json": foreign(steps=[{"source": "tool", "message": ""}]),
        "../e.json": foreign(),
    }
    body = zipped(
        {"runs/a.json": foreign(), **bad}, runs__screens__1=b"", **{"runs__screens__1.png": menu_screen(2)}
    )
    (entry,), problems = import_zip(body, make_task(), takes_unknown=True)
    turns = list(entry.trajectory.turns.all())
    assert [turn.action["kind"] for turn in turns] == ["click", "terminate"]
    assert (turns[0].action["x"], turns[0].action["y"], turns[0].frame != "") == (12, 40, True)
    assert entry.trajectory.task.task_id == "run-7"
    assert entry.trajectory.task.instruction == "Open the reports"
    assert [problem.partition(": ")[0] for problem in problems] == ["../e.json", "c.json", "d.json"]
    assert "no such file in the archive" in problems[0]


@pytest.mark.django_db
def test_an_archive_that_is_none_is_refused():
    _, (problem,) = import_zip(b"PK\x03\x04nonsense", make_task())
    assert "no .zip that can be read" in problem


@pytest.mark.django_db
def test_the_page_offers_it():
    entry = make_replay_entry(turns=2, verdict="gold")
    client = Client()
    client.force_login(make_user("viewer", team=entry.team))
    answer = client.get("/replay/export/?form=atif")
    body = b"".join(answer.streaming_content) if not answer.is_async else None
    assert answer["content-type"] == "application/zip"
    assert body is None or ZipFile(BytesIO(body)).testzip() is None
    assert client.get("/replay/export/?form=x").status_code == 400


@pytest.mark.django_db
def test_what_unpacks_is_left_to_a_process_of_its_own() -> None:
    token = create_token(user=make_user(Role.ANNOTATOR, team=make_team()), name="script")
    api = Client(headers={"authorization": f"Bearer {token}"})
    file, task = SimpleUploadedFile("a.zip", b"PK\x03\x04" + bytes(100)), make_task()
    sent = api.post("/api/v1/replay/imports", {"file": file, "task_set": task.task_set.name})
    assert sent.json()["status"] == "queued"
