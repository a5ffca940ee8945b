"""Task files as others write them: marks, line ends, bad lines, ids by folder, keys beside the schema."""

import json
from pathlib import Path

import pytest

from training.contracts.types import Task
from training.tasks.importers import load_tasks
from training.tasks.supported_by.operating_system import system_of
from training.tasks.task_json import LoadError, to_osworld

MARK = b"\xef\xbb\xbf"


def task(name: str = "a", **more) -> dict:
    return {
        "id": name,
        "instruction": "Save it.",
        "config": [],
        "evaluator": {
            "func": "exact_match",
            "result": {"type": "vm_command_line", "command": "echo hi"},
            "expected": {"type": "rule", "rules": {"expected": "hi\n"}},
        },
        **more,
    }


def text(name: str = "a", **more) -> bytes:
    return json.dumps(task(name, **more), ensure_ascii=False).encode()


def read(folder, data: bytes, name: str = "tasks.jsonl"):
    file = folder / name
    file.write_bytes(data)
    return load_tasks(file)


@pytest.mark.parametrize(
    "data",
    [
        MARK + text(),
        text() + b"\r\n",
        json.dumps(task(), indent=2).replace("\n", "\r\n").encode(),
        b"\n" + text(),
    ],
)
def test_a_file_of_one_task_is_read_with_mark_and_any_line_end(tmp_path, data):
    assert [one.task_id for one in read(tmp_path, data, "one.json").tasks] == ["a"]


@pytest.mark.parametrize(
    ("data", "ids", "bad"),
    [
        (text("a") + b"\n{oops\n" + text("b") + b"\n", ["a", "b"], [2]),
        (MARK + text("a") + b"\r\n" + text("b"), ["a", "b"], []),
        (text("a") + b"\r" + text("b") + b"\r", ["a", "b"], []),
        (text("a") + b"\r\r\n{oops\n\n" + text("b"), ["a", "b"], [3]),
        (text("a") + b"\n" + MARK + text("b"), ["a", "b"], []),
        (text("a", note="x\N{LINE SEPARATOR}y\x85z") + b"\n{oops", ["a"], [2]),
        (text("a") + b"\n[1]\n7\nnull\n" + text("b"), ["a", "b"], [2, 3, 4]),
        (text("a") + b"\n\xff\xfe\n" + text("b"), ["a", "b"], [2]),
        (text("a") + b"\n" + b"[" * 50_000 + b"\n" + text("b"), ["a", "b"], [2]),
        (text("a") + b'\n{"id": "n", "instruction": "x", "level": 1e400}\n' + text("b"), ["a", "b"], [2]),
        (text("a") + b'\n{"id": "n", "instruction": "x", "level": NaN}\n' + text("b"), ["a", "b"], [2]),
        (text("a") + b'\n{"id": "n", "instruction": "x\\u0000y"}\n' + text("b"), ["a", "b"], [2]),
        (text("a") + b'\n{"id": "n", "instruction": "x\\ud800y"}\n' + text("b"), ["a", "b"], [2]),
        (text("a") + b'\n{"id": "n", "instruction": "x", "instruction": "y"}\n' + text("b"), ["a", "b"], [2]),
        (text("a") + b'\n{"id": "n", "instruction": "x", "oracle": [{"a": 1, "a": 1}]}\n', ["a"], [2]),
        (text("a") + b'\n{"task_config": "{oops"}\n' + text("b"), ["a", "b"], [2]),
        (text("a") + b"\n" + text("a") + b"\n" + text("b"), ["a", "b"], [2]),
        (text("a") + b"\n" + text(["n"]) + b"\n" + text("b", family={"x": 1}), ["a"], [2, 3]),
        (text("a") + b"\n" + text("i" * 121) + b"\n" + text("b"), ["a", "b"], [2]),
        (text("a") + b"\n" + text("n", family="f" * 41) + b"\n" + text("b"), ["a", "b"], [2]),
        (text("a") + b"\n" + text("n", level=2**40) + b"\n" + text("b"), ["a", "b"], [2]),
        (text("a") + b"\n" + text("n", screen=[10**9, 1]) + b"\n" + text("b"), ["a", "b"], [2]),
        (text("a") + b"\n" + text("n", instruction=" \n") + b"\n" + text("b"), ["a", "b"], [2]),
    ],
)
def test_one_bad_line_never_refuses_a_file_and_has_its_true_number(tmp_path, data, ids, bad):
    loaded = read(tmp_path, data)
    assert [one.task_id for one in loaded.tasks] == ids
    assert [int(reason.split("line ")[1].split(":")[0]) for reason in loaded.refused] == bad


def test_a_reason_says_what_is_wrong_and_where_within_the_line(tmp_path):
    (reason,) = read(tmp_path, text("a") + b"\n{oops").refused
    assert reason.endswith(
        "tasks.jsonl line 2: not readable as JSON: "
        "Expecting property name enclosed in double quotes (column 2)"
    )


@pytest.mark.parametrize("instruction", ["", " ", "\n\t", "\N{NO-BREAK SPACE}"])
def test_an_empty_instruction_is_refused(tmp_path, instruction):
    with pytest.raises(LoadError, match="instruction is empty"):
        read(tmp_path, text(instruction=instruction), "one.json")


def write(folder, *names: str, **more) -> None:
    for name in names:
        file = folder / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text(file.stem, **more))


@pytest.mark.parametrize("given", ["", "examples", "./examples/../examples"])
def test_the_examples_themselves_give_the_ids_that_the_checkout_gives(tmp_path, given):
    write(tmp_path / "examples", "calc/1", "multi_apps/1", "template")
    loaded = load_tasks(tmp_path / given)
    assert [(one.task_id, one.family) for one in loaded.tasks] == [
        ("calc.1", "calc"),
        ("multi_apps.1", "multi_apps"),
    ]
    assert loaded.refused == []


def test_examples_of_another_system_are_read_alike(tmp_path):
    write(tmp_path / "examples_windows", "excel/1", "word/1")
    ids = [one.task_id for one in load_tasks(tmp_path / "examples_windows").tasks]
    assert ids == ["excel.1", "word.1"]


@pytest.mark.parametrize("given", ["", "examples"])
@pytest.mark.parametrize("has_index", [True, False])
def test_a_task_may_have_a_folder_of_its_own(tmp_path, given, has_index):
    write(tmp_path / "examples", "bigquery/one/one", "bigquery/two/two")
    (tmp_path / "examples" / "bigquery" / "one" / "notes.json").write_text("{}")
    if has_index:
        (tmp_path / "test_all.json").write_text(json.dumps({"bigquery": ["one", "two"]}))
    loaded = load_tasks(tmp_path / given)
    assert [one.task_id for one in loaded.tasks] == ["bigquery.one", "bigquery.two"]


def test_one_id_in_two_folders_is_known_by_its_folder(tmp_path):
    write(tmp_path, "easy/1", "hard/1", "hard/deep/1", "hard/2", "3")
    loaded = load_tasks(tmp_path)
    assert [one.task_id for one in loaded.tasks] == ["3", "easy.1", "hard.1", "2", "hard.deep.1"]
    assert loaded.refused == []


def test_one_id_twice_in_a_folder_is_still_refused(tmp_path):
    write(tmp_path, "easy/1")
    (tmp_path / "easy" / "again.json").write_bytes(text("1"))
    loaded = load_tasks(tmp_path)
    assert [one.task_id for one in loaded.tasks] == ["1"]
    assert "id: 1 is taken by" in loaded.refused[0]


BESIDE = {
    "proxy": True,
    "fixed_ip": True,
    "possibility_of_env_change": "medium",
    "related_apps": ["chrome"],
    "snapshot": "chrome",
    "source": "https://example.org",
}


def test_what_the_source_says_beside_the_schema_is_kept_and_written_back(tmp_path):
    (found,) = read(tmp_path, text(**BESIDE), "one.json").tasks
    assert found.published == BESIDE
    assert to_osworld(found).items() >= {**BESIDE, "id": "a"}.items()
    again = read(tmp_path, json.dumps(to_osworld(found)).encode(), "again.json").tasks
    assert again == [found]


def test_a_task_without_such_keys_is_stored_as_before():
    plain = Task(task_id="a", instruction="Go.")
    assert not {"published", "os"} & plain.model_dump(mode="json").keys()


@pytest.mark.parametrize(
    ("folder", "name", "more", "system"),
    [
        ("evaluation_examples/examples_windows/os", "a", {}, "windows"),
        ("evaluation_examples_windows/examples/os", "a", {}, "windows"),
        ("evaluation_examples/examples/os", "a-win", {}, "windows"),
        ("tasks", "a-WOS-2", {}, "windows"),
        ("evaluation_examples/examples/os", "a", {}, "linux"),
        ("evaluation_examples/examples_windows/os", "a", {"os": "linux"}, "linux"),
        ("evaluation_examples/examples_macos/os", "a", {}, "macos"),
        ("examples_android", "a", {}, "android"),
        ("windows", "a", {}, ""),
        ("tasks", "a-window", {}, ""),
    ],
)
def test_folder_and_id_say_the_system_where_the_task_does_not(tmp_path, folder, name, more, system):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / f"{name}.json").write_bytes(text(name, **more))
    (loaded,) = load_tasks(tmp_path / folder / f"{name}.json").tasks
    assert system_of(loaded)[0] == system


def test_what_a_folder_says_goes_before_a_stale_path_and_is_kept_out_where_the_task_says_it(tmp_path):
    folder = tmp_path / "examples_windows"
    folder.mkdir()
    for name, path in (("stale", "/home/user/a.docx"), ("plain", "C:\\a.docx")):
        opened = {"type": "open", "parameters": {"path": path}}
        (folder / f"{name}.json").write_bytes(text(name, config=[opened]))
    loaded = {one.task_id: one for one in load_tasks(tmp_path).tasks}
    assert (loaded["stale"].os, loaded["plain"].os) == ("windows", "")


ARENA = Path("src/win-arena-container/client/evaluation_examples_windows")


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (Path(), {"os.a", "vlc.b"}),
        (ARENA, {"os.a", "vlc.b"}),
        (ARENA / "test_custom.json", {"vlc.b"}),
        (ARENA / "concurrent_eval" / "test_custom_1.json", {"vlc.b"}),
        (ARENA / "examples", {"os.a", "vlc.b", "vlc.c"}),
    ],
)
def test_windows_agent_arenas_repository_its_folders_and_its_parts_of_an_index_come_in(tmp_path, given, ids):
    for domain, name in (("os", "a"), ("vlc", "b"), ("vlc", "c")):
        file = tmp_path / ARENA / "examples" / domain / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text(name))
    (tmp_path / ARENA / "concurrent_eval").mkdir()
    (tmp_path / ARENA / "test_all.json").write_text('{"os": ["a"], "vlc": ["b"]}')
    for name in ("test_custom.json", "concurrent_eval/test_custom_1.json"):
        (tmp_path / ARENA / name).write_text('{"vlc": ["b"]}')
    loaded = load_tasks(tmp_path / given)
    assert ({one.task_id for one in loaded.tasks}, loaded.refused) == (ids, [])
    assert {one.os for one in loaded.tasks} == {"windows"}


def test_a_task_beside_its_own_files_comes_in_as_spider2_v_has_it(tmp_path):
    examples = tmp_path / "evaluation_examples" / "examples"
    folder = examples / "dbt" / "a"
    folder.mkdir(parents=True)
    (folder / "a.json").write_bytes(text("a"))
    (folder / "connection.json").write_text('{"name": "x"}')
    for given in (tmp_path, examples):
        assert [one.task_id for one in load_tasks(given).tasks] == ["dbt.a"]
