"""Every spelling of a line that files of this kind have, and that what comes in leaves as it came."""

import json
from base64 import b64decode, b64encode
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from testing.factories import (
    make_group,
    make_replay_entry,
    make_task,
    make_team,
    make_trajectory,
    make_user,
)
from testing.replay_imports import check_lines, import_lines
from webapp.dispatcher.work_kinds import kinds
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.lib.statements.json_keys import text_of
from webapp.replay.exports import ChosenEntries, chosen_entries
from webapp.replay.models import ReplayEntry
from webapp.replay.parquet_export import SCHEMA, table_pieces
from webapp.replay.services.demonstrated_tasks import demonstrations_of
from webapp.replay.services.imports import approve_import, request_import
from webapp.replay.services.labels import LABEL_COLUMNS
from webapp.replay.slime_export import export_line, export_record

pytestmark = pytest.mark.django_db


def picture(shade: int = 0, form: str = "PNG") -> bytes:
    out = BytesIO()
    Image.new("RGB", (64, 48), (shade % 256, shade // 256 % 256, 7)).save(out, form)
    return out.getvalue()


PNG = b64encode(picture()).decode()
URL = f"data:image/png;base64,{PNG}"
ASKED = "[Domain]\nmenu\n\n[Task]\nOpen the reports\n\n[Accessibility Tree]\nbutton  Reports"
CALL = 'Action: go\n<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [12, 40]}}\n</tool_call>'  # noqa: E501
USER = {"role": "user", "content": f"<image>\n{ASKED}"}
SAID = {"role": "assistant", "content": CALL}
SYSTEM = {"role": "system", "content": "You operate a computer."}
TEXT_PART = {"type": "text", "text": ASKED}


def asked(content) -> list[dict]:
    return [SYSTEM, {"role": "user", "content": content}, SAID]


VARIANTS = {
    "data URLs": {"messages": [SYSTEM, USER, SAID], "images": [URL]},
    "bare base64": {"messages": [SYSTEM, USER, SAID], "images": [PNG]},
    "JPEG": {"messages": [USER, SAID], "images": [b64encode(picture(form="JPEG")).decode()]},
    "conversations": {"conversations": [SYSTEM, USER, SAID], "images": [URL]},
    "from and value": {
        "conversations": [{"from": "human", "value": USER["content"]}, {"from": "gpt", "value": CALL}],
        "images": [URL],
    },
    "images as bytes and path": {"messages": [USER, SAID], "images": [{"bytes": PNG, "path": "a.png"}]},
    "one image": {"messages": [USER, SAID], "image": URL},
    "text only, images null": {"messages": asked(ASKED), "images": None},
    "text only, no images": {"messages": asked(ASKED)},
    "list content": {"messages": asked([{"type": "image"}, TEXT_PART]), "images": [URL]},
    "image_url inside": {"messages": asked([{"type": "image_url", "image_url": {"url": URL}}, TEXT_PART])},
    "image inside": {"messages": asked([TEXT_PART, {"type": "image", "image": URL}]), "images": None},
    "masked turn": {"messages": [USER, {**SAID, "step_loss_mask": 0}, USER, SAID], "images": [URL, URL]},
    "unchanged screen": {
        "messages": [USER, SAID, {"role": "user", "content": "[Last Action Result]\nok"}, SAID],
        "images": [URL],
    },
    "result in a tool's message": {
        "messages": [USER, SAID, {"role": "tool", "content": "<image>\nok"}, SAID],
        "images": [URL, URL],
    },
    "messages and metadata as JSON text": {
        "messages": json.dumps([USER, SAID]),
        "images": json.dumps([URL]),
        "metadata": json.dumps({"domain": "menu"}),
    },
    "pyautogui": {
        "messages": [USER, {"role": "assistant", "content": "pyautogui.click(12, 40)"}],
        "images": [URL],
    },
}
CALLED = {"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [12, 40]}}
CALLS = {
    "tool_calls": {"tool_calls": [{"id": "1", "type": "function", "function": CALLED}]},
    "tool_calls with arguments as text": {
        "tool_calls": [
            {"type": "function", "function": {**CALLED, "arguments": json.dumps(CALLED["arguments"])}}
        ]
    },
    "tool_calls without function": {"tool_calls": [CALLED]},
    "tool_calls as JSON text": {"tool_calls": json.dumps([{"function": CALLED}])},
    "function_call": {"function_call": CALLED},
}
for name, call in CALLS.items():
    for content in ("", None, "I click."):
        said = {"role": "assistant", "content": content, **call}
        VARIANTS[f"{name}, content {content!r}"] = {"messages": [USER, said], "images": [URL]}
CLICK = {"kind": "click", "x": 12, "y": 40}


def test_there_are_all_thirty_two():
    assert len(VARIANTS) == 32


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_comes_in_and_leaves_as_it_came(name):
    task, team = make_task(), make_team()
    line = {**VARIANTS[name], "task_id": task.task_id, "reward": 1.0, "source_dataset": "other", "extra": [1]}
    (entry,) = import_lines(
        lines=[json.dumps(line)], team=team, task_set=task.task_set, user=make_user(team=team)
    )
    assert all(turn.action == CLICK for turn in entry.trajectory.turns.all())
    has_screen = "text only" not in name
    assert [bool(turn.frame) for turn in entry.trajectory.turns.all()] == [has_screen] * len(
        entry.trajectory.turns.all()
    )
    out = export_record(entry)
    raw = line.get("messages") or line["conversations"]
    raw = json.loads(raw) if isinstance(raw, str) else raw
    assert texts(out["messages"]) == texts(raw)
    assert (out["task_id"], out["reward"], out["source_dataset"]) == (task.task_id, 1.0, "other")
    assert out["extra"] == [1]
    again = import_lines(
        lines=[export_line(entry)],
        team=make_team(),
        task_set=task.task_set,
        user=make_user(),
        keep_labels=True,
    )
    second = export_record(again[0])
    assert {**second, "metadata": None} == {**out, "metadata": None}
    assert shown(again[0]) == shown(entry)


def texts(messages: list[dict]) -> list:
    """What was said, by whom; without pictures."""
    found = []
    for message in messages:
        content = message.get("content", message.get("value"))
        if isinstance(content, list):
            content = [part.get("text", "<image>") for part in content]
        found.append((message.get("role") or message.get("from"), content, message.get("step_loss_mask")))
    return found


def shown(entry: ReplayEntry) -> list:
    columns = (
        "index",
        "frame",
        "width",
        "height",
        "action",
        "observation_text",
        "is_context",
        text_of("completion__text"),
    )
    return list(entry.trajectory.turns.values_list(*columns))


def test_good_lines_come_in_and_bad_ones_are_listed_with_their_number_and_reason():
    task, team = make_task(), make_team()
    good = {**VARIANTS["data URLs"], "task_id": task.task_id, "reward": 1.0}
    bad = {**good, "messages": [USER, {"role": "assistant", "content": "hello"}]}
    foreign = {**good, "task_id": "nowhere"}
    lines = [json.dumps(good), "{", json.dumps(bad), json.dumps(foreign)]
    user = make_user(team=team)
    job = check_lines(lines=lines, team=team, task_set=task.task_set, user=user)
    assert (job.num_new, job.num_bad) == (1, 3)
    assert [number for number, _ in job.problems] == [2, 3, 4]
    assert "holds no tool call" in job.problems[1][1]
    assert approve_import(job=job, user=user)
    kinds["import"].run(job.pk)
    assert ReplayEntry.objects.filter(team=team).count() == 1


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ({"tool_calls": [7]}, "messages[1].tool_calls[0]: no function with a name and arguments"),
        ({"tool_calls": [{"function": {"arguments": {}}}]}, "messages[1].tool_calls[0]: no function"),
        (
            {"tool_calls": [{"function": {"name": "x", "arguments": "{"}}]},
            "[0].arguments: not JSON",
        ),
        ({"tool_calls": [{"function": {"name": "x", "arguments": [1]}}]}, "[0].arguments: not an object"),
        (
            {"tool_calls": [{"function": CALLED}, {"function": CALLED}]},
            "tool_calls: 2 calls; one action per turn",
        ),
        ({"function_call": {"name": "x"}}, "messages[1].function_call.arguments: not an object"),
        ({"tool_calls": []}, "messages[1].content: neither text nor a list"),
    ],
)
def test_a_call_that_cannot_be_read_is_named(call, problem):
    task, team = make_task(), make_team()
    said = {"role": "assistant", "content": None, **call}
    line = {"messages": [USER, said], "images": [URL], "task_id": task.task_id, "reward": 1.0}
    user = make_user(team=team)
    job = check_lines(lines=[json.dumps(line)], team=team, task_set=task.task_set, user=user)
    assert problem in job.problems[0][1]


GOOD = {"messages": [USER, SAID], "images": [URL], "reward": 1.0}
MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


@pytest.mark.parametrize("chunk", [7, 2**20])
@pytest.mark.parametrize(
    ("text", "num_good", "bad"),
    [
        (f"{MARK}<1>", 1, []),
        (f"{MARK}<1>\r\n<2>\r\n", 2, []),
        ("<1>\r\n<2>", 2, []),
        ("<1>\r<2>\r", 2, []),
        ("<1>\n\n\r\n{oops\r<2>", 2, [4]),
        ("<1>\n{oops\n", 1, [2]),
        (f"<1>\n{MARK}<2>\n", 2, []),
        ("<separated>\n{oops\n<2>", 2, [2]),
        ('\n\n<1>\n[]\n"x"\n7\nnull\n', 1, [4, 5, 6, 7]),
    ],
)
def test_lines_are_counted_as_an_editor_counts_them(text, num_good, bad, chunk, monkeypatch):
    monkeypatch.setattr("webapp.replay.imports.file_rows.READ_BYTES", chunk)
    task, team = make_task(), make_team()
    first = json.dumps({**GOOD, "task_id": task.task_id})
    lines = {"1": first, "2": first.replace("[12, 40]", "[13, 40]"), "separated": first}
    lines["separated"] = first.replace("Open the", "Open\N{LINE SEPARATOR}the\x85")
    for name, line in lines.items():
        text = text.replace(f"<{name}>", line)
    user = make_user(team=team)
    upload = SimpleUploadedFile("x.jsonl", text.encode())
    job = request_import(team=team, user=user, task_set=task.task_set, upload=upload)
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert (job.num_new, [number for number, _ in job.problems]) == (num_good, bad)
    assert approve_import(job=job, user=user)
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert (job.status, job.num_stored) == ("finished", num_good)


def test_unknown_tasks_come_in_as_demonstrations_only_when_asked():
    task, team = make_task(), make_team()
    user = make_user(team=team)
    line = {**VARIANTS["data URLs"], "reward": 1.0, "metadata": {"domain": "chrome"}}
    lines = [json.dumps({**line, "task_id": name}) for name in ("new-1", "new-1_chunk2", task.task_id)]
    upload = SimpleUploadedFile("x.jsonl", "\n".join(lines).encode())
    job = request_import(team=team, user=user, task_set=task.task_set, upload=upload, takes_unknown=True)
    kinds["import"].run(job.pk)
    name = demonstrations_of(team)
    assert not TaskRecord.objects.filter(task_set__name=name).exists()
    job.refresh_from_db()
    assert approve_import(job=job, user=user)
    kinds["import"].run(job.pk)
    made = TaskRecord.objects.get(task_set__name=name)
    assert made.task_set not in TaskSet.objects.of(make_team()), "another team's"
    assert (made.task_id, made.family, made.instruction) == ("new-1", "chrome", "Open the reports")
    assert (made.status, made.runs_on) == ("unsupported", "")
    found = ReplayEntry.objects.filter(team=team).values_list("trajectory__task", flat=True)
    assert sorted(found) == sorted([made.pk, task.pk])


# --- Parquet ------------------------------------------------------------------------------------------


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
