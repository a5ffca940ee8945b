"""Tasks that people write and upload: versions that experiments keep to, whole uploads, no leaks."""

import io
import json
import stat
import zipfile

import pyarrow
import pyarrow.parquet
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from testing.factories import make_task, make_team, make_user
from testing.page_text import page_text
from training.contracts.config import ConfigError, ExperimentConfig, TaskConfig, parse_config
from webapp.accounts.models import AuditEntry, Role
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.experiments.services.experiments import queue_experiment
from webapp.tasks_library import upload
from webapp.tasks_library.services import task_sets

pytestmark = pytest.mark.django_db

EVALUATOR = {
    "func": "exact_match",
    "result": {"type": "vm_command_line", "command": "cat /tmp/x"},
    "expected": {"type": "rule", "rules": {"expected": "hi"}},
}


def osworld(task_id: str = "note/one", **values) -> dict:
    return {"id": task_id, "instruction": f"Write {task_id}.", "evaluator": EVALUATOR, **values}


@pytest.fixture
def team(operator):
    return operator.memberships.get().team


def save(client: Client, values: dict, base: TaskRecord | None = None, name: str = "mine"):
    fields = {"text": json.dumps(values), "set": name, "note": "why", "task": base.pk if base else ""}
    return client.post("/task-editor/", fields)


def current(task_id: str = "note/one") -> TaskRecord:
    return TaskRecord.objects.current().get(task_id=task_id)


def config(**tasks) -> ExperimentConfig:
    return parse_config({"tasks": {"task_set": "mine", **tasks}})


def names(tasks: TaskConfig, team) -> dict[str, str]:
    return dict(TaskRecord.objects.named_by(tasks, team).values_list("task_id", "instruction"))


# --- versions ----------------------------------------------------------------------------------------


def test_an_edit_is_another_version_and_experiments_keep_to_theirs(client, team, operator):
    assert save(client, osworld()).status_code == 302
    first = current()
    before = queue_experiment(team=team, owner=operator, name="x", config=config())
    answer = save(client, osworld(instruction="Write two."), base=first)
    assert answer.url == f"/tasks/mine/{current().pk}/"
    after = queue_experiment(team=team, owner=operator, name="y", config=config())
    assert [each.settings.tasks.revision for each in (before, after)] == [1, 2]
    assert names(before.settings.tasks, team) == {"note/one": "Write note/one."}
    assert names(after.settings.tasks, team) == {"note/one": "Write two."}
    page = page_text(client.get(answer.url))
    assert "2 of 2, since revision 2" in page
    assert "+ &quot;instruction&quot;: &quot;Write two.&quot;" in page
    assert AuditEntry.objects.filter(action="saved", kind="task set", object_id="mine").count() == 2


def test_a_version_that_was_saved_meanwhile_is_not_overwritten(client, operator):
    save(client, osworld())
    first = current()
    save(client, osworld(instruction="Hers."), base=first)
    answer = save(client, osworld(instruction="His."), base=first)
    assert answer.status_code == 422
    assert "note/one has version 2 in mine by now" in page_text(answer)
    assert "His." in page_text(answer)
    assert current().instruction == "Hers."


def test_an_older_version_is_edited_into_the_next_one(client, operator):
    save(client, osworld())
    first = current()
    save(client, osworld(instruction="Other."), base=first)
    page = page_text(client.get("/task-editor/", {"task": first.pk}))
    assert f'name="task" value="{current().pk}"' in page
    assert "Write note/one." in page
    save(client, osworld(), base=current())
    assert [current().version, current().instruction] == [3, "Write note/one."]


def test_a_shared_task_is_copied_into_a_set_of_the_team(client, team, operator):
    shared = make_task()
    values = {**osworld(shared.task_id), "instruction": shared.instruction}
    assert save(client, values, base=shared, name=shared.task_set.name).status_code == 422
    assert save(client, values, base=shared).status_code == 302
    assert TaskSet.objects.get(name="mine").team == team
    assert TaskRecord.objects.current().filter(task_id=shared.task_id).count() == 2


def test_another_team_sees_nothing_of_it(client, team, operator):
    save(client, osworld(family="our-own-family"))
    row = current()
    stranger = Client()
    stranger.force_login(make_user(Role.OPERATOR, team=make_team()))
    for path in (f"/tasks/mine/{row.pk}/", "/tasks/mine/", f"/task-editor/?task={row.pk}"):
        assert stranger.get(path).status_code == 404
    assert "mine" not in page_text(stranger.get("/tasks/"))
    for path in ("/trajectories/", "/demonstrate/", "/replay/", "/experiments/launch/"):
        assert "our-own-family" not in page_text(stranger.get(path))
    assert stranger.post("/demonstrate/", {"task": row.pk}).status_code == 404
    assert save(stranger, osworld()).status_code == 422  # the name is taken
    with pytest.raises(ConfigError, match="mine is not among the task sets of"):
        queue_experiment(team=make_team(), owner=None, name="x", config=config())


def test_a_revision_that_has_not_been_is_refused(client, team, operator):
    save(client, osworld())
    with pytest.raises(ConfigError, match="the newest revision of mine is 1"):
        queue_experiment(team=team, owner=operator, name="x", config=config(revision=2))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"id": ""}, "id is missing"),
        ({"split": "exam"}, "line 1: split"),
        ({"instruction": " WRITE  note/two. ", "split": "heldout"}, "is that of note/two in split train"),
    ],
)
def test_what_cannot_be_saved_is_named_and_stays_typed(client, operator, values, problem):
    save(client, osworld("note/two"))
    answer = save(client, osworld(**values) if "id" not in values else {**osworld(), **values})
    assert answer.status_code == 422
    assert problem in page_text(answer)
    assert [row.task_id for row in TaskRecord.objects.all()] == ["note/two"]


def test_the_check_names_unsupported_verbs_and_the_difference(client, operator):
    save(client, osworld())
    values = osworld(config=[{"type": "download", "parameters": {"files": []}}])
    fields = {"text": json.dumps(values, indent=1), "set": "mine", "task": current().pk}
    page = page_text(client.post("/task-editor/check/", fields))
    assert "setup verb download is not supported" in page
    assert 'data-line="' in page
    assert "Against version 1" in page
    assert "It can be saved" in page


def reversed_keys(value):
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return value


def test_keys_in_another_order_are_no_difference(client, operator):
    """PostgreSQL hands the parts of a task back with their keys in an order of its own."""
    turned = reversed_keys(osworld(level=1))
    save(client, osworld(level=1))
    for values in (osworld(level=1), turned):
        fields = {"text": json.dumps(values), "set": "mine", "task": current().pk}
        assert "Nothing differs from version 1" in page_text(client.post("/task-editor/check/", fields))
    save(client, {**turned, "level": 2}, base=current())
    page = client.get(f"/tasks/mine/{current().pk}/")
    assert [line.text.strip() for line in page.context["changes"] if line.mark.strip()] == [
        '"level": 1,',
        '"level": 2,',
    ]


# --- uploads -----------------------------------------------------------------------------------------


def zipped(files: dict[str, str | bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def parquet(rows: list[dict]) -> bytes:
    packed = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), packed)
    return packed.getvalue()


def bring(client: Client, name: str, content: bytes, **fields: str):
    file = SimpleUploadedFile(name, content)
    return client.post("/task-upload/", {"file": file, "set": "mine", "heldout": "0", **fields})


ROWS = [{"task_config": json.dumps(osworld(name)), "task_id": name} for name in ("a", "b")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", json.dumps(osworld("a")).encode()),
        ("tasks.zip", zipped({"notes/a.json": json.dumps(osworld("a")), "notes/picture.png": b"x"})),
        ("train.parquet", parquet(ROWS[:1])),
        ("train.jsonl", json.dumps(ROWS[0]).encode()),
        ("train.jsonl", json.dumps(osworld("a")).encode()),
    ],
)
def test_each_kind_of_file_comes_in(client, operator, name, content):
    page = page_text(bring(client, name, content))
    assert "1 added, 0 as another version" in page
    row = current("a")
    assert (row.instruction, row.author, row.status) == ("Write a.", operator, "supported")


def test_uploading_again_makes_versions_of_what_changed_and_names_unsupported_verbs(client, operator):
    bring(client, "train.parquet", parquet(ROWS))
    verb = [{"type": "download", "parameters": {"files": []}}]
    changed = zipped({f"{n}.json": json.dumps(osworld(n, config=verb if n == "a" else [])) for n in "ab"})
    page = page_text(bring(client, "tasks.zip", changed))
    assert "0 added, 1 as another version, 1 unchanged, 1 unsupported" in page
    assert "config[0]: setup verb download is not supported" in page
    assert (current("a").version, current("b").version) == (2, 1)
    assert TaskSet.objects.get().revision == 2


GOOD = json.dumps(osworld("a"))
LEAK = json.dumps(osworld("b", instruction="Write  A.", split="heldout"))


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{", "b.json: not readable as JSON"),
        ("[" * 100_000, "b.json: not readable as JSON"),
        (json.dumps(osworld("b", level="high")), "b.json: level"),
        (json.dumps(osworld("b", instruction="\x00")), "holds the character NUL"),
        (json.dumps(osworld("b", screen=[1, 1])), "b.json: screen must be"),
        (LEAK, "b: its instruction is that of a in split train"),
    ],
)
def test_one_bad_task_keeps_the_whole_file_out_unless_it_is_left_out(client, operator, bad, reason):
    files = zipped({"a.json": GOOD, "b.json": bad})
    answer = bring(client, "tasks.zip", files)
    assert answer.status_code == 422
    assert reason in page_text(answer)
    assert not TaskSet.objects.exists()
    page = page_text(bring(client, "tasks.zip", files, leave_out="on"))
    assert "1 added" in page
    assert reason in page
    assert [row.task_id for row in TaskRecord.objects.all()] == ["a"]


def link() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        entry = zipfile.ZipInfo("a.json")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    return packed.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.zip", zipped({"../a.json": GOOD}), "leads out of it"),
        ("a.zip", zipped({"/tmp/a.json": GOOD}), "leads out of it"),
        ("a.zip", zipped({"..\\a.json": GOOD}), "leads out of it"),
        ("a.zip", zipped({"c:/a.json": GOOD}), "leads out of it"),
        ("a.zip", link(), "is a link"),
        ("a.zip", zipped({"x/" * 20 + "a.json": GOOD}), "nested too deep"),
        ("a.zip", b"PK\x03\x04 broken", "not readable as .zip"),
        ("a.zip", zipped({"a.txt": "x"}), "no tasks found"),
        ("a.parquet", b"x", "not readable as parquet"),
        ("a.parquet", parquet([{"task_config": 1}]), "column task_config must hold text"),
        ("a.exe", b"x", "a.exe is no .json"),
        ("a.json", b"\xff", "a.json: not readable as JSON"),
    ],
)
def test_a_hostile_file_is_refused_whole(client, operator, name, content, reason):
    answer = bring(client, name, content)
    assert answer.status_code == 422
    assert reason in page_text(answer)
    assert not TaskSet.objects.exists()


def test_what_an_archive_unpacks_to_is_bounded_by_what_is_read(client, operator, monkeypatch):
    monkeypatch.setattr(upload, "MAX_UNPACKED", 2 * upload.MIB)
    bomb = zipped({"a.json": GOOD, "b.json": " " * (3 * upload.MIB)})
    assert len(bomb) < 10_000
    assert "when it is unpacked" in page_text(bring(client, "a.zip", bomb))
    table = parquet([{"task_config": " " * upload.MIB}] * 3)
    assert "holds more than 2 MiB" in page_text(bring(client, "a.parquet", table))
    monkeypatch.setattr(upload, "MAX_FILES", 1)
    assert "more than 1 files" in page_text(bring(client, "a.zip", zipped({"a.json": "", "b.json": ""})))
    assert not TaskSet.objects.exists()


def test_a_set_has_a_largest_size(client, operator, monkeypatch):
    monkeypatch.setattr(task_sets, "MAX_TASKS", 1)
    answer = bring(client, "train.parquet", parquet(ROWS))
    assert answer.status_code == 422
    assert not TaskSet.objects.exists()


# --- scripts -----------------------------------------------------------------------------------------


def test_scripts_write_and_upload_as_people_do(client, operator):
    body = {"task": osworld("a"), "note": "by a script"}
    saved = client.post("/api/v1/tasks/mine", body, content_type="application/json")
    assert (saved.status_code, saved.json()["version"]) == (201, 1)
    twice = client.post("/api/v1/tasks/mine", body, content_type="application/json")
    assert "id: a has version 1" in twice.json()["error"]["message"]
    wrong = {"task": osworld("b", split="exam")}
    refused = client.post("/api/v1/tasks/mine", wrong, content_type="application/json")
    assert "task.split" in refused.json()["error"]["fields"]
    file = SimpleUploadedFile("train.parquet", parquet(ROWS))
    answer = client.post("/api/v1/tasks/mine/files", {"file": file, "heldout": "0"}).json()
    assert "num_added" in answer, answer
    assert (answer["num_added"], answer["num_unchanged"], answer["revision"]) == (1, 0, 2)
    assert [row["task_id"] for row in client.get("/api/v1/tasks/mine").json()["items"]] == ["a", "b"]
    leak = SimpleUploadedFile("x.json", LEAK.encode())
    assert client.post("/api/v1/tasks/mine/files", {"file": leak}).status_code == 400
