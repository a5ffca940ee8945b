"""`manage.py import_tasks` brings tasks into the database, marks what cannot run, and forgets nothing."""

import json

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from testing.factories import make_user
from training.content.task_sets.first_desk.level_4 import generate_all
from training.contracts.config import DesktopConfig
from training.contracts.types import Task
from webapp.experiments.models import TaskRecord, TaskSet
from webapp.experiments.services.task_sets import import_task_set

pytestmark = pytest.mark.django_db


def run(capsys, *arguments: str) -> str:
    call_command("import_tasks", *arguments)
    return capsys.readouterr().out


def task(task_id: str = "a", **values) -> Task:
    return Task(**{"task_id": task_id, "instruction": "Go.", "evaluator": {"func": "infeasible"}, **values})


def test_first_desk_is_imported_whole_and_supported(capsys):
    tasks = generate_all()
    assert f"first-desk: {len(tasks)} added, 0 changed" in run(capsys, "first-desk")
    rows = TaskRecord.objects.filter(task_set__name="first-desk", status="supported")
    assert rows.count() == len(tasks)
    assert Task.model_validate(rows.get(task_id=tasks[500].task_id).spec) == tasks[500]


def test_a_second_import_changes_nothing(capsys, django_assert_max_num_queries):
    run(capsys, "first-desk")
    verified = TaskRecord.objects.first()
    TaskRecord.objects.filter(pk=verified.pk).update(oracle_score=1.0, verified_at=timezone.now())
    with django_assert_max_num_queries(10):
        out = run(capsys, "first-desk")
    assert "0 added, 0 changed" in out
    assert TaskRecord.objects.get(pk=verified.pk).oracle_score == 1.0


def test_a_changed_task_is_another_version_without_a_verification():
    import_task_set(name="s", origin="x", tasks=[task()])
    TaskRecord.objects.update(oracle_score=1.0, idle_score=0.0, verified_at=timezone.now())
    before = TaskRecord.objects.get()
    result = import_task_set(name="s", origin="x", tasks=[task(instruction="Stop.")])
    row = TaskRecord.objects.current().get()
    assert (result.added, result.changed, result.task_set.revision) == (0, 1, 2)
    assert (row.version, row.instruction, row.oracle_score, row.verified_at) == (2, "Stop.", None, None)
    assert TaskRecord.objects.at(1).get() == before
    assert before.spec["instruction"] == "Go."


def test_a_task_that_left_the_source_stays_in_older_revisions():
    import_task_set(name="s", origin="x", tasks=[task("a"), task("b")])
    result = import_task_set(name="s", origin="y", tasks=[task("b")])
    assert result.gone == 1
    assert [row.task_id for row in TaskRecord.objects.current()] == ["b"]
    assert TaskRecord.objects.at(1).count() == 2
    assert TaskSet.objects.get().origin == "y"
    import_task_set(name="s", origin="y", tasks=[task("a"), task("b")])
    assert [row.version for row in TaskRecord.objects.current().order_by("task_id")] == [2, 1]


def test_a_folder_is_imported_and_unsupported_tasks_are_listed_with_the_reason(capsys, tmp_path):
    folder = tmp_path / "My Tasks"
    folder.mkdir()
    good = {"id": "good", "instruction": "Go.", "evaluator": {"func": "infeasible"}}
    bad = {**good, "id": "bad", "config": [{"type": "download", "parameters": {"files": []}}]}
    for values in (good, bad):
        (folder / f"{values['id']}.json").write_text(json.dumps(values))
    out = run(capsys, str(folder))
    assert "my-tasks: 2 added, 0 changed, 0 unchanged, 0 gone, 1 unsupported" in out
    assert "1 cannot run on Deskhand's desktops:" in out
    assert "1: setup verb download is not supported (desktops have no network) (bad)" in out
    assert dict(TaskRecord.objects.values_list("task_id", "status")) == {
        "good": "supported",
        "bad": "unsupported",
    }


def test_the_name_can_be_chosen(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"id": "a", "instruction": "Go.", "evaluator": {}}))
    call_command("import_tasks", str(tmp_path), "--name", "mine", verbosity=0)
    assert TaskSet.objects.get().name == "mine"
    assert "evaluator.func is missing" in TaskRecord.objects.get().reason


@pytest.mark.parametrize("name", ["test_all.json", "a/b", "two words", "ß", "x" * 61])
def test_a_name_that_no_address_holds_is_refused(tmp_path, name):
    (tmp_path / "a.json").write_text(json.dumps({"id": "a", "instruction": "Go.", "evaluator": {}}))
    with pytest.raises(CommandError, match="--name: .* use letters, digits"):
        call_command("import_tasks", str(tmp_path), "--name", name, verbosity=0)
    assert not TaskSet.objects.exists()


@pytest.mark.parametrize("stem", ["Tasks v2.final", "y" * 90])
def test_a_files_name_becomes_a_name_with_a_page(client, tmp_path, stem):
    path = tmp_path / f"{stem}.json"
    path.write_text(json.dumps({"id": "a", "instruction": "Go.", "evaluator": {}}))
    call_command("import_tasks", str(path), verbosity=0)
    client.force_login(make_user())
    assert client.get(f"/tasks/{TaskSet.objects.get().name}/").status_code == 200


@pytest.mark.parametrize(
    ("source", "part"), [("nowhere", "neither a generated set"), ("BROKEN", "not readable")]
)
def test_a_source_that_cannot_be_read_says_why(tmp_path, source, part):
    if source == "BROKEN":
        (tmp_path / "a.json").write_text("{")
        source = str(tmp_path)
    with pytest.raises(CommandError, match=part):
        call_command("import_tasks", source)
    assert not TaskSet.objects.exists()


def evaluator(func: str, result: dict) -> dict:
    """An evaluator that compares `result` with an empty expectation."""
    return {"func": func, "result": result, "expected": {"type": "rule", "rules": {"expected": ""}}}


def test_an_import_notes_every_judge_and_experiments_see_what_theirs_can_run(tmp_path, capsys):
    checkout = tmp_path / "evaluation_examples" / "examples"
    for domain, name, wanted in (
        ("os", "plain", evaluator("exact_match", {"type": "vm_command_line", "command": "true"})),
        ("writer", "docx", evaluator("compare_docx_files", {"type": "vm_file", "path": "/x", "dest": "x"})),
        ("chrome", "tabs", evaluator("is_expected_tabs", {"type": "open_tabs_info"})),
    ):
        (checkout / domain).mkdir(parents=True, exist_ok=True)
        values = {"id": name, "instruction": "Go.", "config": [], "evaluator": wanted}
        (checkout / domain / f"{name}.json").write_text(json.dumps(values))
    call_command("import_tasks", str(tmp_path), "--name", "osworld")

    osworld_on_docker = DesktopConfig.model_validate(
        {"provider": "osworld", "osworld": {"machines": "docker"}}
    )

    def names(desktops: DesktopConfig) -> set[str]:
        return set(TaskRecord.objects.runnable(desktops).values_list("task_id", flat=True))

    assert names(DesktopConfig()) == {"os.plain"}
    assert names(DesktopConfig.model_validate({"provider": "osworld"})) == {"os.plain", "writer.docx"}
    assert names(osworld_on_docker) == {"os.plain", "writer.docx", "chrome.tabs"}
    assert "2 can run with provider osworld on our desktops" in capsys.readouterr().out
    tabs = TaskRecord.objects.get(task_id="chrome.tabs")
    assert "no Google Chrome" in dict(tabs.other_reasons)["osworld-here"]
    assert "windows" in tabs.reasons, "it is made for another system: nothing that its page tells"
    assert "windows" not in dict(tabs.other_reasons)


def test_the_runtime_that_fits_best_comes_first_with_its_reasons_in_groups(tmp_path, capsys):
    rows = []
    for number in range(40):
        getter = {"type": "vm_file", "path": "/home/user/x", "dest": "x"}
        wanted = evaluator("compare_docx_files", getter)
        config = [{"type": "googledrive", "parameters": {}}] if number < 30 else []
        rows.append({"id": f"t{number:02d}", "instruction": "Go.", "config": config, "evaluator": wanted})
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, rows)))
    lines = run(capsys, str(tmp_path / "many.jsonl")).splitlines()
    assert len(lines) < 20
    runs = [line.strip() for line in lines if " can run " in line]
    assert runs[0] == "40 can run with provider osworld on OSWorld's own machines"
    assert runs[1] == "10 can run with provider osworld on our desktops"
    assert "  30 cannot run with provider osworld on our desktops:" in lines
    assert lines[-1].startswith("    30: googledrive: it needs a Google account (t00, t01, t02 and 27 more)")


def test_conditions_that_no_runtime_gives_are_kept_and_said(tmp_path, capsys):
    plain = {"id": "a", "instruction": "Go.", "evaluator": {"func": "infeasible"}}
    rows = [
        {**plain, "proxy": True, "fixed_ip": True, "possibility_of_env_change": "low"},
        {**plain, "id": "b", "proxy": True, "fixed_ip": False, "possibility_of_env_change": "high"},
        {**plain, "id": "c", "proxy": False},
        {**plain, "id": "d"},
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    out = run(capsys, str(tmp_path / "t.jsonl"))
    assert "2 ask for a proxy: desktops.osworld.enable_proxy on OSWorld's own machines (proxy)" in out
    assert "1 ask for a fixed IP address, which DesktopEnv leaves to its machines' network (fixed_ip)" in out
    assert "1 use sites that may have changed" in out
    assert TaskRecord.objects.get(task_id="a").spec["published"]["proxy"] is True
    assert "published" not in TaskRecord.objects.get(task_id="d").spec


def test_a_bad_line_is_listed_with_its_number_and_the_others_come_in(tmp_path, capsys):
    good = {"id": "a", "instruction": "Go.", "evaluator": {"func": "infeasible"}}
    text = "\n".join([json.dumps(good), "{oops", json.dumps({**good, "id": "b"})])
    (tmp_path / "t.jsonl").write_text(text)
    out = run(capsys, str(tmp_path / "t.jsonl"))
    assert "t: 2 added" in out
    assert "1 refused" in out
    assert "t.jsonl line 2: not readable as JSON" in out


def test_windows_tasks_are_run_by_windows_machines_alone(capsys):
    out = run(capsys, "windows-keyboard")
    assert "47 can run on Windows machines" in out
    assert "0 can run on Deskhand's desktops" in out
    windows = DesktopConfig.model_validate({"provider": "windows"})
    assert TaskRecord.objects.runnable(windows).count() == 47
    assert TaskRecord.objects.runnable(DesktopConfig()).count() == 0
    assert TaskRecord.objects.first().other_system == "Windows"
