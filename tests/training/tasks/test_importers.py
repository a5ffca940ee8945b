"""Importers read what they can, refuse what they cannot with the file's name, and never mix the splits."""

import json

import pyarrow
import pyarrow.parquet
import pytest

from training.content.task_sets.first_desk import generate
from training.tasks.importers import load_tasks
from training.tasks.task_json import LoadError, split_of, to_osworld


def osworld(task_id: str, **more) -> dict:
    return {
        "id": task_id,
        "snapshot": "os",
        "instruction": f"Do {task_id}.",
        "source": "somewhere",
        "config": [{"type": "sleep", "parameters": {"seconds": 1}}],
        "related_apps": ["os"],
        "evaluator": {"func": "infeasible"},
        **more,
    }


def write(path, values) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(values if isinstance(values, str) else json.dumps(values))


def write_parquet(path, rows) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def test_an_osworld_checkout_gives_its_examples_with_their_domain(tmp_path):
    write(tmp_path / "evaluation_examples" / "examples" / "os" / "a.json", osworld("a"))
    write(tmp_path / "evaluation_examples" / "examples" / "chrome" / "b.json", osworld("b"))
    write(tmp_path / "evaluation_examples" / "examples" / "template.json", {"id": "", "instruction": ""})
    write(tmp_path / "package.json", {"name": "not a task"})
    tasks = {task.task_id: task for task in load_tasks(tmp_path).tasks}
    assert {name: task.family for name, task in tasks.items()} == {"os.a": "os", "chrome.b": "chrome"}
    assert tasks["os.a"].screen == (1920, 1080)
    assert tasks["os.a"].config[0]["type"] == "sleep"


@pytest.mark.parametrize("given", ["", "evaluation_examples", "evaluation_examples/test_all.json"])
def test_the_index_of_a_checkout_says_what_is_a_task(tmp_path, given):
    here = tmp_path / "evaluation_examples"
    for domain, name in (("os", "a"), ("chrome", "a"), ("chrome", "left-out")):
        write(here / "examples" / domain / f"{name}.json", osworld(name))
    write(here / "test_all.json", {"os": ["a", "gone"], "chrome": ["a"]})
    loaded = load_tasks(tmp_path / given)
    assert [task.task_id for task in loaded.tasks] == ["os.a", "chrome.a"]
    (reason,) = loaded.refused
    assert "examples/os/gone.json: not readable" in reason


def test_a_smaller_index_gives_its_tasks_only(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / "examples" / "os" / f"{name}.json", osworld(name))
    write(tmp_path / "test_all.json", {"os": ["a", "b"]})
    write(tmp_path / "test_small.json", {"os": ["b"]})
    assert [task.task_id for task in load_tasks(tmp_path / "test_small.json").tasks] == ["os.b"]


def test_an_index_of_another_form_is_refused(tmp_path):
    write(tmp_path / "examples" / "os" / "a.json", osworld("a"))
    write(tmp_path / "test_all.json", ["a"])
    with pytest.raises(LoadError, match=r"test_all\.json: expected an object of domains"):
        load_tasks(tmp_path)


def test_one_bad_task_does_not_keep_out_the_others(tmp_path):
    write(tmp_path / "bad.json", osworld("bad", instruction=7))
    write(tmp_path / "broken.json", "{")
    write(tmp_path / "good.json", osworld("good"))
    loaded = load_tasks(tmp_path)
    assert [task.task_id for task in loaded.tasks] == ["good"]
    assert [reason.split(": ", 1)[1].split(":")[0] for reason in loaded.refused] == [
        "instruction is missing",
        "not readable as JSON",
    ]


def test_a_folder_of_tasks_may_hold_other_json(tmp_path):
    write(tmp_path / "one.json", osworld("one"))
    write(tmp_path / "index.json", {"train": ["one"]})
    assert [task.task_id for task in load_tasks(tmp_path).tasks] == ["one"]


def test_a_single_file_is_a_task_set_of_one(tmp_path):
    write(tmp_path / "one.json", osworld("one", split="heldout", level=3))
    (task,) = load_tasks(tmp_path / "one.json").tasks
    assert (task.split, task.level) == ("heldout", 3)


def test_a_generated_set_survives_export_and_import(tmp_path):
    tasks = generate()[::50]
    for number, task in enumerate(tasks):
        write(tmp_path / f"{number:03d}.json", to_osworld(task))
    assert load_tasks(tmp_path).tasks == tasks


def test_a_slime_osworld_parquet_gives_its_tasks_by_file_name(tmp_path):
    for name, task_id in (("train", "a"), ("test", "b")):
        row = {
            "prompt": json.dumps(task_id),
            "images": "[]",
            "task_id": task_id,
            "domain": "os",
            "instruction": "Row text.",
            "task_config": json.dumps(osworld(task_id)),
        }
        write_parquet(tmp_path / f"{name}.parquet", [row])
    tasks = {task.task_id: task for task in load_tasks(tmp_path).tasks}
    assert {name: (task.split, task.family) for name, task in tasks.items()} == {
        "a": ("train", "os"),
        "b": ("heldout", "os"),
    }
    assert tasks["a"].instruction == "Do a."


def test_a_row_without_config_takes_id_and_instruction_from_its_columns(tmp_path):
    write_parquet(tmp_path / "t.parquet", [{"task_id": "a", "instruction": "Go.", "task_config": ""}])
    (task,) = load_tasks(tmp_path / "t.parquet").tasks
    assert (task.task_id, task.instruction, task.evaluator) == ("a", "Go.", {})


def test_a_task_stays_on_its_side_whatever_else_is_imported():
    sides = {name: split_of(name, 0.2) for name in map(str, range(500))}
    assert sides == {name: split_of(name, 0.2) for name in reversed(sides)}
    assert 60 < list(sides.values()).count("heldout") < 140
    assert {split_of(name, 0.0) for name in sides} == {"train"}


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("a.json", "{", "a.json: not readable as JSON"),
        ("a.json", osworld("", id=None), "a.json: id is missing"),
        ("a.json", osworld("a", instruction=None), "a.json: instruction"),
        ("a.json", osworld("a", split="exam"), "a.json: split"),
        ("a.json", osworld("a", config=[1]), "a.json: config.0"),
        ("a.json", osworld("a", evaluator=[]) | {"evaluator": [1]}, "a.json: evaluator"),
        ("a.json", "[]", "no tasks found"),
        ("a.txt", "hello", "no tasks found"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_file(tmp_path, name, content, part):
    write(tmp_path / name, content)
    with pytest.raises(LoadError, match=part):
        load_tasks(tmp_path)


def test_a_parquet_without_task_config_is_refused(tmp_path):
    write_parquet(tmp_path / "t.parquet", [{"prompt": "x"}])
    with pytest.raises(LoadError, match=r"t\.parquet: column task_config is missing; columns: prompt"):
        load_tasks(tmp_path)


def test_a_broken_row_is_refused_with_its_number_and_the_others_come_in(tmp_path):
    write_parquet(tmp_path / "t.parquet", [{"task_config": json.dumps(osworld("a"))}, {"task_config": "{"}])
    loaded = load_tasks(tmp_path)
    assert [task.task_id for task in loaded.tasks] == ["a"]
    (reason,) = loaded.refused
    assert "t.parquet row 1: task_config is not JSON" in reason


def test_an_id_in_two_splits_comes_in_once(tmp_path):
    for name in ("train", "test"):
        write_parquet(tmp_path / f"{name}.parquet", [{"task_config": json.dumps(osworld("a"))}])
    loaded = load_tasks(tmp_path)
    assert [(task.task_id, task.split) for task in loaded.tasks] == [("a", "heldout")]
    (reason,) = loaded.refused
    assert reason.endswith(f"id: a is taken by {tmp_path / 'test.parquet'} row 0")


def test_other_kinds_of_files_are_refused(tmp_path):
    write(tmp_path / "a.csv", "x")
    with pytest.raises(LoadError, match=r"neither a folder nor a \.parquet, \.jsonl or \.json"):
        load_tasks(tmp_path / "a.csv")
