"""Small sets of demonstrations with pyautogui code, laid out as their authors do, and their import."""

import json
from pathlib import Path

from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from PIL import Image

from testing.factories import make_team, make_user
from webapp.accounts.models import Role
from webapp.dispatcher.work_kinds import kinds
from webapp.experiments.models import TaskSet
from webapp.replay.models import ReplayEntry
from webapp.replay.services.imports import approve_import, request_import

SIZE = (1000, 500)
CODE_MAPPING = {
    "episodes": "*.jsonl",
    "pictures": "images",
    "task_id": "task_id",
    "instruction": ["natural_language_task", "actual_task", "instruction"],
    "keep": {"task_completed": True},
    "steps": "traj",
    "picture": "image",
    "thought": "value.thought",
    "code": "value.code",
    "coordinates": "fraction",
}
"""Of the set that `code_set` writes."""
ACTED = [
    "pyautogui.click(x=0.25, y=0.5)",
    "import pyautogui\npyautogui.hotkey(['ctrl', 's'])",
    "pyautogui.moveTo(0.1, 0.2)\npyautogui.dragTo(0.9, 0.2, button='left')",
    "pyautogui.write(message='x = 0.5')",
    "pyautogui.scroll(-5)",
    "computer.terminate(status='success')",
]


def picture(path: Path, colour: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", SIZE, colour).save(path)


def step(index: int, code: str) -> dict:
    value = {"code": code, "thought": f"thought {index}", "observation": "a table", "last_step_correct": True}
    return {"index": index, "image": f"{index}.png", "value": value}


def code_set(folder: Path, codes: list[str], **values: object) -> Path:
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
