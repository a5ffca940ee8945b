"""Task files as others write them: marks, line ends, bad lines, ids by folder, keys beside the schema."""

import json

import pytest

from training.contracts.types import Task
from training.tasks.importers import load_tasks
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
        (text("a") + b'\n{"task_config": "{oops"}\n' + text("b"), ["a", "b"], [2]),
        (text("a") + b"\n" + text("a") + b"\n" + text("b"), ["a", "b"], [2]),
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
