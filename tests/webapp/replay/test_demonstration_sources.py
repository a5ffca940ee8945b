"""Published sets of demonstrations, laid out as their authors do, come into the replay buffer."""

import json
from pathlib import Path

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from PIL import Image

from testing.factories import make_team, make_user
from webapp.accounts.models import Role
from webapp.dispatcher.work_kinds import kinds
from webapp.experiments.models import TaskSet, TaskStatus
from webapp.replay.demonstration_sources.convert import convert
from webapp.replay.demonstration_sources.mapping import SHIPPED, MappingError, read_mapping
from webapp.replay.models import ReplayEntry
from webapp.replay.services.imports import approve_import, request_import

SIZE = (1000, 500)


def picture(path: Path, colour: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", SIZE, colour).save(path)


def step(index: int, code: str) -> dict:
    value = {"code": code, "thought": f"thought {index}", "observation": "a table", "last_step_correct": True}
    return {"index": index, "image": f"{index}.png", "value": value}


def agentnet(folder: Path, codes: list[str], **values: object) -> Path:
    for index in range(len(codes)):
        picture(folder / "images" / f"{index}.png", f"#0000{index:02d}")
    episode = {
        "task_id": "20240927_5855063d",
        "instruction": "sort it",
        "natural_language_task": "Sort the table by its first column.",
        "task_completed": True,
        "alignment_score": 9,
        "traj": [step(index, code) for index, code in enumerate(codes)],
    }
    with (folder / "agentnet_ubuntu.jsonl").open("a") as file:
        file.write(json.dumps(episode | values) + "\n")
    return folder


ACTED = [
    "pyautogui.click(x=0.25, y=0.5)",
    "import pyautogui\npyautogui.hotkey(['ctrl', 's'])",
    "pyautogui.moveTo(0.1, 0.2)\npyautogui.dragTo(0.9, 0.2, button='left')",
    "pyautogui.write(message='x = 0.5')",
    "pyautogui.scroll(-5)",
    "computer.terminate(status='success')",
]


def odyssey(folder: Path) -> Path:
    info = [
        ("CLICK", [[250, 500]]), ("TEXT", "tomatoes"), ("SCROLL", [[500, 900], [500, 100]]),
        ("CLICK", "KEY_BACK"), ("COMPLETE", ""),
    ]  # fmt: skip
    steps = []
    for index, (action, argument) in enumerate(info):
        name = f"0001_{index}.png"
        picture(folder / "screenshots" / name, f"#00{index:02d}00")
        steps.append(
            {"step": index, "screenshot": name, "action": action, "info": argument, "intention": "on"}
        )
    episode = {
        "episode_id": "0001",
        "device_info": {"product": "Pixel", "w": 1080, "h": 2400},
        "task_info": {"category": "Web_Shopping", "app": ["Shop"], "instruction": "Buy tomatoes."},
        "step_length": len(steps),
        "steps": steps,
    }
    (folder / "annotations").mkdir()
    (folder / "annotations" / "0001.json").write_text(json.dumps(episode))
    return folder


def imported(folder: Path, mapping: str, tmp_path: Path) -> ReplayEntry:
    """By the command and the import that people use."""
    out = tmp_path / "lines.jsonl"
    call_command("convert_demonstrations", folder, out, mapping=mapping)
    team = make_team()
    task_set = TaskSet.objects.create(name="own", title="own", team=team)
    user = make_user(Role.ANNOTATOR, team=team)
    job = request_import(
        team=team,
        user=user,
        task_set=task_set,
        upload=SimpleUploadedFile("lines.jsonl", out.read_bytes()),
        takes_unknown=True,
    )
    kinds["import"].run(job.pk)
    job.refresh_from_db()
    assert job.problems == []
    assert approve_import(job=job, user=user)
    kinds["import"].run(job.pk)
    return ReplayEntry.objects.get(team=team)


@pytest.mark.django_db
def test_agentnet_comes_in_as_demonstrations_only(tmp_path):
    entry = imported(agentnet(tmp_path / "set", ACTED), "agentnet", tmp_path)
    task = entry.trajectory.task
    assert task.instruction == "Sort the table by its first column."
    assert (task.status, "no evaluator" in task.reason) == (TaskStatus.UNSUPPORTED, True)
    turns = entry.trajectory.turns.order_by("index")
    actions = [turn.action for turn in turns]
    assert [action["kind"] for action in actions] == [
        "click", "key", "move", "drag", "type", "scroll", "terminate",
    ]  # fmt: skip
    assert (actions[0]["x"], actions[0]["y"]) == (250, 250)
    assert (actions[3]["to_x"], actions[3]["to_y"]) == (900, 100)
    assert actions[4]["text"] == "x = 0.5"
    assert turns[0].completion["text"].startswith("thought 0\n")
    assert len({turn.frame for turn in turns}) == len(ACTED)


@pytest.mark.django_db
def test_gui_odyssey_comes_in(tmp_path):
    entry = imported(odyssey(tmp_path / "set"), "gui-odyssey", tmp_path)
    assert (entry.trajectory.task.instruction, entry.family) == ("Buy tomatoes.", "Web_Shopping")
    actions = [turn.action for turn in entry.trajectory.turns.order_by("index")]
    assert [(action["kind"], action.get("x"), action.get("y")) for action in actions] == [
        ("click", 250, 250), ("type", None, None), ("drag", 500, 450), ("key", None, None),
        ("terminate", None, None),
    ]  # fmt: skip
    assert actions[3]["keys"] == ["alt", "Left"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("os.remove('x')", "traj[0].value.code"),
        ("pyautogui.click(", "cannot be read"),
        ("", "no code"),
        ("import os", "holds no call"),
        ("pyautogui.click(1e999, 0.5)", "infinity"),
        (f"pyautogui.click({'-' * 900}1, 2)", "recursion"),
    ],
)
def test_bad_episodes_are_named_and_the_others_come(tmp_path, code, said):
    agentnet(agentnet(agentnet(tmp_path, [code]), ACTED), ACTED, task_completed=False)
    with (tmp_path / "agentnet_ubuntu.jsonl").open("a") as file:
        file.write("{broken\n" + "[" * 5000)
    found = list(convert(tmp_path, read_mapping("agentnet")))
    assert [episode.line is not None for episode in found] == [False, True, False, False, False]
    assert said in found[0].problem
    assert found[2].problem == ""
    assert [episode.problem[:8] for episode in found[3:]] == ["not JSON"] * 2
    assert found[3].where == "agentnet_ubuntu.jsonl:4"


def test_a_file_with_a_mark_and_other_line_ends_is_read(tmp_path):
    file = agentnet(tmp_path, ACTED) / "agentnet_ubuntu.jsonl"
    line = file.read_bytes().strip()
    file.write_bytes(b"\xef\xbb\xbf" + line + b"\r\n{oops\r" + line)
    found = list(convert(tmp_path, read_mapping("agentnet")))
    assert [(one.where, bool(one.line)) for one in found] == [
        ("agentnet_ubuntu.jsonl:1", True),
        ("agentnet_ubuntu.jsonl:2", False),
        ("agentnet_ubuntu.jsonl:3", True),
    ]


def test_pictures_must_lie_in_their_folder_and_be_pictures(tmp_path):
    agentnet(tmp_path, ["pyautogui.click(0.5, 0.5)"])
    lines = (tmp_path / "agentnet_ubuntu.jsonl").read_text()
    (tmp_path / "agentnet_ubuntu.jsonl").write_text(lines.replace("0.png", "../../secret.png"))
    assert "is outside of" in next(convert(tmp_path, read_mapping("agentnet"))).problem
    (tmp_path / "agentnet_ubuntu.jsonl").write_text(lines.replace("0.png", "\\u0000.png"))
    assert "the character NUL" in next(convert(tmp_path, read_mapping("agentnet"))).problem
    (tmp_path / "agentnet_ubuntu.jsonl").write_text(lines)
    (tmp_path / "images" / "0.png").write_text("no picture")
    assert "cannot identify" in next(convert(tmp_path, read_mapping("agentnet"))).problem


def test_a_mapping_of_ones_own_is_checked(tmp_path):
    values = yaml.safe_load((SHIPPED / "agentnet.yaml").read_text())
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump(values))
    assert read_mapping(str(own)) == read_mapping("agentnet")
    for change, said in (
        ({"stepz": "x"}, "stepz"),
        ({"code": ""}, "either code"),
        ({"steps": None}, "steps"),
    ):
        own.write_text(yaml.safe_dump(values | change))
        with pytest.raises(MappingError, match=said):
            read_mapping(str(own))
    with pytest.raises(MappingError, match="agentnet, gui-odyssey"):
        read_mapping("nothing")
    with pytest.raises(CommandError, match="no file is named"):
        call_command("convert_demonstrations", tmp_path, tmp_path / "out.jsonl", mapping="agentnet")
