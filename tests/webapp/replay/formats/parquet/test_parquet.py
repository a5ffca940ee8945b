"""Tables that leave and come back."""

import json
from base64 import b64decode, b64encode
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testing.factories import (
    make_group,
    make_replay_entry,
    make_task,
    make_team,
    make_trajectory,
    make_user,
)
from testing.replay_imports import import_lines
from testing.replay_lines import (
    CALL,
    VARIANTS,
    asked,
    picture,
    shown,
)
from webapp.dispatcher.work_kinds import kinds
from webapp.replay.exports import ChosenEntries, chosen_entries
from webapp.replay.formats.parquet import rows as table_rows
from webapp.replay.formats.parquet.export import SCHEMA, table_pieces
from webapp.replay.formats.slime_export import export_record
from webapp.replay.models import ReplayEntry
from webapp.replay.services.imports import approve_import, request_import
from webapp.replay.services.labels import LABEL_COLUMNS

pytestmark = pytest.mark.django_db


def table_of(entries: list[ReplayEntry]) -> bytes:
    rows = ReplayEntry.objects.filter(pk__in=[entry.pk for entry in entries]).order_by("pk")
    labels = rows.values("pk", *LABEL_COLUMNS)
    export = ChosenEntries(entries[0].team_id, {label["pk"]: label for label in labels}, {})
    return b"".join(table_pieces(chosen_entries(export)))


def import_table(body: bytes, team, task_set) -> list[ReplayEntry]:
    user = make_user(team=team)
    upload = SimpleUploadedFile("x.parquet", body)
    job = request_import(team=team, user=user, task_set=task_set, upload=upload)
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert (job.problems, job.message) == ([], "")
    assert approve_import(job=job, user=user)
    kinds["import"].run(job.pk)
    return list(ReplayEntry.objects.filter(team=team).order_by("pk"))


def test_a_table_of_all_variants_and_of_our_own_comes_back_equal():
    task, team = make_task(), make_team()
    lines = [
        {**line, "task_id": task.task_id, "reward": 1.0 + place, "extra": {"place": place}}
        for place, line in enumerate(VARIANTS.values())
        if place not in (1, 3, 8)  # the same screens, actions and words as others
    ]
    import_lines(lines=map(json.dumps, lines), team=team, task_set=task.task_set, user=make_user(team=team))
    group = make_group(task=task, team=team)
    make_replay_entry(trajectory=make_trajectory(group=group, turns=3, reward=1.0))
    before = list(ReplayEntry.objects.filter(team=team).order_by("pk"))
    body = table_of(before)
    schema = pq.read_schema(BytesIO(body))
    assert (schema.names, schema.metadata) == (SCHEMA.names, SCHEMA.metadata)
    after = import_table(body, make_team(), task.task_set)
    assert len(after) == len(before) > 5
    assert [shown(entry) for entry in after] == [shown(entry) for entry in before]
    for old, new in zip(before, after, strict=True):
        first, second = export_record(old), export_record(new)
        assert {**first, "metadata": 0, "quality_rank": 0} == {**second, "metadata": 0, "quality_rank": 0}


def test_a_table_is_read_on_from_the_row_that_was_stored_last():
    task, team = make_task(), make_team()
    line = {**VARIANTS["text only, no images"], "task_id": task.task_id, "reward": 1.0}
    rows = [
        {
            **line,
            "messages": [*asked(f"[Task]\nnumber {n}")[:2], {"role": "assistant", "content": f"{n}\n{CALL}"}],
        }
        for n in range(70)
    ]
    out = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out, row_group_size=40)
    user = make_user(team=team)
    upload = SimpleUploadedFile("x.parquet", out.getvalue())
    job = request_import(team=team, user=user, task_set=task.task_set, upload=upload)
    stops = iter([False, True])
    kinds["import"].run(job.pk, lambda: next(stops))
    job.refresh_from_db()
    assert (job.done_lines, job.num_new) == (40, 40)
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert (job.status, job.num_new, job.num_bad) == ("checked", 70, 0)


@pytest.mark.parametrize(("limit", "status"), [(table_rows.MAX_GROUP_BYTES, "checked"), (1 << 20, "failed")])
def test_a_row_group_that_unpacks_to_too_much_is_refused_before_it_is_read(monkeypatch, limit, status):
    monkeypatch.setattr(table_rows, "MAX_GROUP_BYTES", limit)
    task, team = make_task(), make_team()
    line = {**VARIANTS["text only, no images"], "task_id": task.task_id, "reward": 1.0}
    small, large = BytesIO(), {"source_dataset": "x" * (4 << 20)}
    pq.write_table(pa.Table.from_pylist([{**line, **large}]), small, compression="zstd")
    assert len(small.getvalue()) < 64 << 10
    upload = SimpleUploadedFile("x.parquet", small.getvalue())
    job = request_import(team=team, user=make_user(team=team), task_set=task.task_set, upload=upload)
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert job.status == status
    assert ("Its row group 0 unpacks to more than 1 MiB" in job.message) is (status == "failed")


@pytest.mark.parametrize("body", [b"PAR1", b"PAR1" + 64 * b"x" + b"PAR1"])
def test_a_broken_table_fails_with_a_reason(body):
    task, team = make_task(), make_team()
    upload = SimpleUploadedFile("x.parquet", body)
    job = request_import(team=team, user=make_user(team=team), task_set=task.task_set, upload=upload)
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert job.status == "failed"
    assert "no Parquet table" in job.message


def test_datasets_opens_a_table_with_its_images(tmp_path):
    datasets = pytest.importorskip("datasets")
    entry = make_replay_entry(turns=2)
    file = tmp_path / "replay.parquet"
    file.write_bytes(table_of([entry]))
    rows = datasets.load_dataset(
        "parquet", data_files=str(file), split="train", cache_dir=str(tmp_path / "c")
    )
    row = rows[0]
    assert row["images"][0].size == (
        entry.trajectory.turns.first().width,
        entry.trajectory.turns.first().height,
    )
    assert row["messages"][0]["role"] == "system"
    assert json.loads(row["metadata"])["deskhand"]["entry"] == entry.pk


# --- any conversation ---------------------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=30).filter(
    lambda text: "<" not in text and "pyautogui" not in text and "[Task]" not in text
)


@st.composite
def conversations(draw) -> dict:
    """Turns with or without screens, words, accessibility text and masks."""
    messages, images = [{"role": "system", "content": draw(WORDS)}], []
    for number in range(draw(st.integers(1, 4))):
        screens = draw(st.integers(0, 2))
        images += [b64encode(picture(draw(st.integers(0, 3)))).decode() for _ in range(screens)]
        tree = draw(WORDS)
        content = screens * "<image>\n" + f"[Task]\n{draw(WORDS)}\n\n[Accessibility Tree]\n{tree}"
        messages.append({"role": "user", "content": content})
        call = json.dumps(
            {"name": "computer_use", "arguments": {"action": "type", "text": draw(WORDS) or "x"}}
        )
        said = {"role": "assistant", "content": f"{draw(WORDS)} {number}\n<tool_call>\n{call}\n</tool_call>"}
        messages.append(said | draw(st.sampled_from([{}, {"step_loss_mask": 0}, {"step_loss_mask": 1}])))
    prefix = draw(st.sampled_from(["", "data:image/png;base64,"]))
    return {"messages": messages, "images": [prefix + image for image in images] or None}


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(st.lists(conversations(), min_size=1, max_size=3), st.booleans())
def test_any_conversation_survives_both_ways(lines, as_table):
    task, team = make_task(), make_team()
    named = [
        json.dumps({**line, "task_id": task.task_id, "reward": 1.0, "number": place})
        for place, line in enumerate(lines)
    ]
    user = make_user(team=team)
    entries = import_lines(lines=named, team=team, task_set=task.task_set, user=user)
    if as_table:
        entries = import_table(table_of(entries), make_team(), task.task_set)
    for entry in entries:
        out = export_record(entry)
        came = lines[out["number"]]
        assert out["messages"] == came["messages"]
        bodies = [b64decode(image.rpartition(",")[2]) for image in came["images"] or []]
        assert [b64decode(image.rpartition(",")[2]) for image in out["images"]] == bodies
